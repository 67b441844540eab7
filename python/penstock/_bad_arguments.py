"""The module in which C++ looks up what explains a wrong argument (python/src/arguments.cc)."""

from penstock._src.base.bad_arguments import explained as explained
