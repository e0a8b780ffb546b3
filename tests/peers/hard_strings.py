"""Texts on which tokenizers differ, and generated ones."""

from __future__ import annotations

import unicodedata

from hypothesis import strategies as st

HARD = [
    "",
    " ",
    "  a  b ",
    "\t\ttabs\n\n\nlines\r\nand\rmore \n ",
    "x = [1, 22, 333, 4444];\n    return x[0]",
    "It's I'LL don't we've 'tis o'clock",
    "中文漢字 日本語カタカナ 한국어",
    "🙂👩🏽‍💻🇩🇪 ✈️",
    "e\u0301 n\u0303 ﬁ ① Ⅳ ² ½ ß İ ſ",
    "\x00\x01\x1b[0m\x7f\x85\u200b\ufeff\u00ad",
    "हिन्दी العربية עברית ไทย",
    "CamelCase HTTPServer snake_case kebab-case",
    "http://example.org/a?b=c&d=%20#e",
    "<s> </s> <unk> [CLS] [MASK] <|endoftext|>",
    "a" * 300,
    "… “quoted” – dash — ‘x’",
]
TURNING = st.sampled_from(
    [
        *"aSsltvedRm'’ſé中1²٣ \t\n\r\x0b\x1c\x85\u3000!?-_🙂\u200d\u0301Σσİıßﬁ①Ⅳ$+<%\u00ad\u200b\ufeff",
        *(
            "  ",
            "the ",
            "don't",
            "I'LL",
            "12345",
            "été",
            "e\u0301",
            "<s>",
            "\r\n",
            "CamelCase",
            "日本語",
            "한국어",
        ),
    ]
)
# Characters that have not changed since Unicode 3.2: some tables of `tokenizers` are old.
OLD = [
    chr(code)
    for code in range(0x10000)
    if unicodedata.ucd_3_2_0.category(chr(code)) == unicodedata.category(chr(code)) not in ("Cn", "Cs")
]
texts = st.lists(st.one_of(TURNING, TURNING, st.sampled_from(OLD)), max_size=30).map("".join)
