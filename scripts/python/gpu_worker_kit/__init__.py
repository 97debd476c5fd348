"""The kit for programs, which `gpu-worker programs new | build | test | import` runs."""
