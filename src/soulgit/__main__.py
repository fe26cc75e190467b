"""`python -m soulgit` runs the command line."""

from soulgit.cli import main

if __name__ == "__main__":
    main()
