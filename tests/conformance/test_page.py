"""The page of requirements names the tests that settle them."""

from __future__ import annotations

from tests.conformance.page import PAGE, page


def test_the_page_of_requirements_is_that_of_the_marks() -> None:
    written = PAGE.read_text(encoding="utf-8").splitlines()
    stale = [line for line in page().splitlines() if line not in written]
    assert not stale, (
        f"run python -m tests.conformance.page: {len(stale)} lines differ, the first is {stale[0]}"
    )
    assert written == page().splitlines()
