"""lm_eval with local-completions: python lm_eval_client.py URL FOLDER -> scores of each answer, and the accuracy.

FOLDER has the documents of a task of multiple choice in data.jsonl; tokens are those of the server.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

TASK = """
task: colors
dataset_path: json
dataset_kwargs:
  data_files:
    test: {folder}/data.jsonl
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: answer
metric_list:
  - metric: acc
"""


def main() -> None:
    os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    import lm_eval
    from lm_eval.tasks import TaskManager

    url, folder = sys.argv[1], Path(sys.argv[2])
    (folder / "tasks").mkdir()
    (folder / "tasks" / "colors.yaml").write_text(TASK.format(folder=folder))
    found = lm_eval.simple_evaluate(
        model="local-completions",
        model_args={"model": "model", "base_url": url, "num_concurrent": 2, "max_retries": 1},
        tasks=["colors"],
        task_manager=TaskManager(include_path=str(folder / "tasks"), include_defaults=False),
        bootstrap_iters=0,
    )
    samples = sorted(found["samples"]["colors"], key=lambda sample: sample["doc_id"])
    scores = [[resp[0][0] for resp in sample["resps"]] for sample in samples]
    print(json.dumps({"scores": scores, "accuracy": found["results"]["colors"]["acc,none"]}))


if __name__ == "__main__":
    main()
