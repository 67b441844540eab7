"""Each example of the README and of the pages that are written by hand runs as printed."""

import re

import pytest
from docs_pages import PAGES, ROOT, blocks_of, pages, run_page

RUN = [page for page in pages() if any(block.kind in ("python", "sh") for block in blocks_of(page))]
# What a page's commands must print.
PRINTED = {
    "README.md": r"loss 0\.\d+",
    "tutorials/pservers.md": r"(loss after 200 steps: 0\.0[0-4](.|\n)*){3}",
    "tutorials/ctr.md": r"AUC of the test log: 0\.8",
    "tutorials/hvd.md": (
        r"2 ranks, sum \[1\. 1\. 1\.\](.|\n)*accuracy on the test images: 0\.[89](.|\n)*E-collective-mismatch"
    ),
    "howto/from_mxnet.md": r"rank 0 of 2 weights \[1\. 2\. 3\.\](.|\n)*\[\[3\. 3\. 3\.\]",
    "howto/find_a_hang.md": r"cause: trainer 1 stopped contributing at step 10",
    "howto/continue_a_job.md": r"from step 0, (.|\n)*from step 60, (.|\n)*step 100  whole",
    "howto/large_tables.md": r"rows of tables\n(.|\n)*pserver 0 .* made, [1-9]\d* evicted, [1-9]\d* dropped",
    "howto/save_and_continue.md": r"(first loss(.|\n)*){2}",
    "howto/several_machines.md": r"rank 0 of 2: 2",
    "reference/exit_codes.md": r"E-feed-shape",
}
KINDS = {"python", "sh", "json", "text", "{include}", "{toctree}", "{raw}"}
WIDEST = 92  # characters of a line of code that fit beside the sidebar


def name_of(page):
    return str(page.relative_to(ROOT if page.name == "README.md" else PAGES))


@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_the_examples_of_a_page_run_as_printed(page, tmp_path):
    said = run_page(page, tmp_path)
    assert re.search(PRINTED.get(name_of(page), ""), said), said


def test_pages_with_examples_are_found():
    assert len(RUN) >= 15 and {name_of(page) for page in RUN} >= set(PRINTED)


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_the_blocks_of_a_page_have_a_kind_and_fit(page):
    fences = re.findall(r"^```(.*)$", page.read_text(), re.MULTILINE)
    assert len(fences) % 2 == 0 and not any(fences[1::2])
    for block in blocks_of(page):
        assert block.kind in KINDS, block
        assert block.comment("not run") != "", f"a block that does not run needs a reason: {block.text}"
        for line in (
            block.text.splitlines() if block.kind in ("python", "sh", "json") and page.name != "README.md" else ()
        ):
            assert len(line) <= WIDEST, line
