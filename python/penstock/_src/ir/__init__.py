"""Programs: blocks, operators, variables, their descs, and graphs of them."""

from penstock._src.ir import native as native
