import sys

from penstock.distributed.launch.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
