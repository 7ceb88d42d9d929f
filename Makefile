# The commands of the README. Each works from a fresh clone; what they need goes to .venv.
.DELETE_ON_ERROR:
.PHONY: help setup demo test long chaos soak turns check generate bench clean

help:
	@echo "make demo            start the server, a browser and local chat pages, and show them at work"
	@echo "make test            run all tests; ARGS='tests/store -x' goes to pytest"
	@echo "make long            run the tests that prove more of what others prove too"
	@echo "make chaos           run the long tests, then long rounds of chaos; ROUNDS=20, OPERATIONS=500, SEED= repeats one"
	@echo "make soak            2,000 random schedules, then 200 watchers cut for 10 minutes; SCHEDULES, SECONDS, WATCHERS"
	@echo "make turns           ask 1,000 random questions while much is closed and killed; TURNS, SEED= repeats one run"
	@echo "make check           run all static checks"
	@echo "make generate        write the code of the contract anew"
	@echo "make bench [B=name]  run all benchmarks, or benchmarks/name.py"
	@echo "make setup, clean    make or remove what the others need"

setup:
	@scripts/setup

demo: setup
	@browser="$$(scripts/chromium)" && TABMUX_CHROMIUM="$$browser" exec .venv/bin/tabmuxd demo

test:
	@scripts/test $(ARGS)

long:
	@scripts/test --long -m long

# One round after another, so that each has the machine to itself. A seed is there to repeat just its round.
chaos:
	@$(if $(SEED),:,$(MAKE) --no-print-directory long)
	@TABMUX_CHAOS_ROUNDS="$(or $(ROUNDS),20)" TABMUX_CHAOS_OPERATIONS="$(or $(OPERATIONS),500)" TABMUX_CHAOS_CLIENTS=8 \
		TABMUX_CHAOS_SEED="$(SEED)" scripts/test -n 0 -p no:randomly -s tests/chaos

# The watch alone, for long: schedules judged by the rules W1 to W12, then a server under load.
soak:
	@TABMUX_SCHEDULES="$(or $(SCHEDULES),2000)" scripts/test -n 0 tests/events/test_watch_rules.py
	@TABMUX_SOAK_SECONDS="$(or $(SECONDS),600)" TABMUX_SOAK_WATCHERS="$(or $(WATCHERS),200)" \
		TABMUX_SOAK_SEED="$(SEED)" scripts/test -n 0 -p no:randomly -s tests/soak

# Answers alone, for long: each is the page's, whole and once, or the turn tells why not.
turns:
	@TABMUX_TURNS="$(or $(TURNS),1000)" TABMUX_TURNS_SEED="$(SEED)" scripts/test -n 0 -p no:randomly -s tests/turns

check:
	@scripts/check

generate:
	@scripts/generate

# A benchmark is a module that runs as a program; the others in the folder serve them.
bench: setup
	@browser="$$(scripts/chromium)" && export TABMUX_CHROMIUM="$$browser" && \
	for name in $(or $(B),$$(grep -sl __main__ benchmarks/*.py | xargs -rn1 basename -s .py)); do \
		echo "== $$name" && .venv/bin/python -m "benchmarks.$$name" || { echo "$$name ended with code $$?" >&2; exit 1; }; \
	done

clean:
	rm -rf .venv .venv-generate .venv-gradio build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
	find . -name '*.egg-info' -prune -exec rm -rf {} +
