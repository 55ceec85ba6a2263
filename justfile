# Recipes run with the programs beside this `just`, so no environment needs to be activated.

bin := parent_directory(just_executable())
lockoptions := "--quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url"

# list the recipes
default:
    @"{{ just_executable() }}" --list

# run the tests, a file in one of three processes, and then the crash matrix alone, which is many processes by itself;
# arguments go to pytest: just test tests/unit -k key
test *args:
    "{{ bin }}"/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder {{ if args == "" { "--ignore tests/crash" } else { args } }}
    {{ if args == "" { '"' + bin + '"/python -m pytest tests/crash' } else { "" } }}

# everything that a change must pass
check: format-check lint types layers test

# rewrite files in the one format
format:
    "{{ bin }}"/ruff format .
    "{{ bin }}"/ruff check --fix --exit-zero --quiet .

format-check:
    "{{ bin }}"/ruff format --check .

lint:
    "{{ bin }}"/ruff check .

types:
    "{{ bin }}"/mypy

# imports go down the layers
layers:
    "{{ bin }}"/lint-imports

# regenerate the locks; `just lock --upgrade` takes the newest versions
lock *args:
    "{{ bin }}"/uv pip compile pyproject.toml {{ lockoptions }} {{ args }} --extra test --extra demo --extra cli --extra postgresql --extra mysql --extra django --extra check --extra web --extra metrics --extra otel --extra schema --group dev -o requirements/dev.lock
    "{{ bin }}"/uv pip compile pyproject.toml {{ lockoptions }} {{ args }} --extra demo --extra check --group build -o requirements/demo.lock
    "{{ bin }}"/uv pip compile {{ lockoptions }} {{ args }} --no-deps --group services -o requirements/services.lock
    "{{ bin }}"/uv pip compile {{ lockoptions }} {{ args }} --group mutants --constraint requirements/dev.lock -o requirements/mutants.lock

# the long tests that `just test` leaves out
soak *args:
    "{{ bin }}"/python -m pytest -m soak --timeout 0 {{ args }}

# part of the tests with the lowest and the newest versions, on each Python that is here: just versions lowest-3.11
versions *rows:
    "{{ bin }}"/python -m tests.versions {{ rows }}

# break the guard in many ways, one after the other, and see that the tests notice; words choose some of them
mutants *words:
    "{{ bin }}"/python -m tests.mutants {{ words }}

# let mutmut break every line of domain; names with * choose some of them
mutants-of-domain *names:
    "{{ bin }}"/python -m tests.mutants.domain {{ names }}

# measure; arguments choose files in bench/
bench *args:
    @test -d bench || { echo "nothing is measured yet: there is no bench/ here"; exit 1; }
    "{{ bin }}"/python -m bench {{ args }}

# build the documentation, without a warning, into build/docs
docs *args:
    "{{ bin }}"/python -m sphinx -W --keep-going -q -b html docs build/docs {{ args }}

# the main job, on an embedded server and a ledger of its own
demo *args:
    "{{ bin }}"/effectonce demo {{ args }}

# each source of duplicates, made to happen
lab *args:
    "{{ bin }}"/effectonce lab {{ args }}

# put what the lab has measured (files of its --json, later ones win) into README and docs
lab-tables +results:
    "{{ bin }}"/python -m effectonce.lab.results.markdown {{ results }}

# the tests' own servers, until Ctrl-C; prints the variables to export
services *args:
    "{{ bin }}"/python -m tests.services {{ args }}

# collect the fragments of changelog.d/ under a version: just changelog 0.2.0
changelog version:
    "{{ bin }}"/towncrier build --yes --version {{ version }}
