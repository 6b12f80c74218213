"""The command line: flags, settings, banner. Nothing here imports torch before work begins."""
