# Everything that is fetched or built lands in .cache and bin; `make clean` removes both. The virtual
# environment comes first on the path, since qod fetches Postgres with its pip where none is installed.
SHELL := /bin/bash
GO     ?= go
CACHE  := $(CURDIR)/.cache
VENV   := $(CACHE)/venv
PYTHON := $(VENV)/bin/python
EXT    := $(CACHE)/extensions
TOOLS  := $(CACHE)/tools
DUCKDB := 1.5.5
JDBC   := $(CACHE)/flight-sql-jdbc-driver-18.3.0.jar
TAGS   := duckdb_arrow
DEMO   := examples/quickstart
FUZZTIME ?= 60s

export GOFLAGS ?= -buildvcs=false

.PHONY: help
help: ## say what each target does
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/qod
	$(GO) build -tags $(TAGS) -trimpath -o bin/qod ./cmd/qod

# Terraform takes providers from a directory of this form, beside registries, and so does OpenTofu, below the name of its own:
# docs/terraform.md.
PROVIDER_VERSION ?= 0.1.0
PLATFORM := $(shell $(GO) env GOOS)_$(shell $(GO) env GOARCH)
PLUGINS  ?= $(HOME)/.terraform.d/plugins
PLUGIN   := qod-io/qod/$(PROVIDER_VERSION)/$(PLATFORM)/terraform-provider-qod_v$(PROVIDER_VERSION)
PROVIDER := $(PLUGINS)/registry.terraform.io/$(PLUGIN)

.PHONY: install-provider
install-provider: ## build the Terraform provider into PLUGINS, where the init of Terraform and OpenTofu finds it without a registry
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -X main.version=$(PROVIDER_VERSION)" -o "$(PROVIDER)" ./provider/terraform-provider-qod
	@mkdir -p "$(dir $(PLUGINS)/registry.opentofu.org/$(PLUGIN))" && ln -f "$(PROVIDER)" "$(PLUGINS)/registry.opentofu.org/$(PLUGIN)"
	@echo "$(PROVIDER)"

.PHONY: quickstart
quickstart: export PATH := $(VENV)/bin:$(PATH)
quickstart: build extensions ## plan, apply and query examples/quickstart, and leave it running
	@QOD=$(CURDIR)/bin/qod EXTENSIONS=$(EXT) $(DEMO)/run.sh up

.PHONY: stop
stop: ## end everything that quickstart started, and only that
	@QOD=$(CURDIR)/bin/qod $(DEMO)/run.sh down

.PHONY: purge
purge: ## end it and remove its data as well
	@QOD=$(CURDIR)/bin/qod $(DEMO)/run.sh purge

# Packages that link DuckDB, whose threads the race detector cannot see, and two that compute for minutes in one
# goroutine; of these, the tests that use several run under the detector as well, as all other packages do.
LINKED   := ./cmd/... ./runtime/guard ./runtime/node ./test ./test/bench ./test/tpch
SOLITARY := ./engine/config ./test/matrix
PURE      = $(filter-out $(shell $(GO) list -tags $(TAGS) $(LINKED) $(SOLITARY)),$(shell $(GO) list -tags $(TAGS) ./...))

TESTS := test test-detected test-linked test-tofu fuzz

.PHONY: test
$(TESTS): export PATH := $(TOOLS):$(VENV)/bin:$(PATH)
$(TESTS): export QOD_TEST_EXTENSION_DIR := $(EXT)
$(TESTS): export QOD_TEST_PYTHON := $(PYTHON)
$(TESTS): export QOD_TEST_JDBC := $(JDBC)
$(TESTS): export QOD_TEST_BINARY := $(CURDIR)/bin/qod
$(TESTS) docs: export QOD_TEST_TFPLUGINDOCS := $(CACHE)/tfplugindocs
test: build extensions clients lint $(CACHE)/tfplugindocs ## fetch what tests need and run all of them
	@$(MAKE) --no-print-directory -j 2 --output-sync=target test-detected test-linked
	@$(MAKE) --no-print-directory fuzz

# The two halves of the tests run side by side: each waits for processes more than it computes.
.PHONY: test-detected test-linked
test-detected:
	$(GO) test -race -tags $(TAGS) -timeout 25m -p 1 $(PURE)
	$(GO) test -race -tags $(TAGS) -run Objects ./engine/config

test-linked:
	$(GO) test -tags $(TAGS) -timeout 25m -p 1 $(SOLITARY) $(LINKED)

# Compiling OpenTofu takes minutes, and `make test` does without. TOFU may name another one.
TOFU ?= $(CACHE)/tofu

.PHONY: test-tofu
test-tofu: export QOD_TEST_TOFU := $(TOFU)
test-tofu: build extensions $(CACHE)/tfplugindocs $(TOFU) ## build OpenTofu, and run all tests that run Terraform with it instead
	$(GO) test -tags $(TAGS) -count 1 ./provider
	$(GO) test -tags $(TAGS) -count 1 -timeout 15m -run Terraform ./test

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME
	@GO="$(GO)" TAGS="$(TAGS)" test/fuzz.sh $(FUZZTIME)

.PHONY: lint
lint: $(CACHE)/staticcheck ## gofmt, go vet and staticcheck
	@test -z "$$(gofmt -l cmd engine provider runtime schema test)" || { gofmt -l cmd engine provider runtime schema test; exit 1; }
	$(GO) vet -tags $(TAGS) ./...
	$(CACHE)/staticcheck -tags $(TAGS) ./...

.PHONY: docs
docs: $(CACHE)/tfplugindocs ## write the derived files: references of kinds, settings, commands and the provider, JSON Schema, OpenAPI, the example of a plan
	$(GO) test -tags $(TAGS) ./schema ./engine/plan ./runtime/api ./cmd/qod ./provider -run Current -count 1 -update

.PHONY: bench
bench: build extensions clients ## measure against a direct connection and against Terraform, each paired in one run, and plans of a large estate
	@QOD=$(CURDIR)/bin/qod EXTENSIONS=$(EXT) PYTHON=$(PYTHON) test/bench/run.sh
	@QOD=$(CURDIR)/bin/qod EXTENSIONS=$(EXT) test/bench/estate.sh
	@QOD=$(CURDIR)/bin/qod EXTENSIONS=$(EXT) test/bench/terraform.sh

.PHONY: clean
clean: ## remove what was built and fetched
	rm -rf bin .cache

# --- what is fetched ---

.PHONY: extensions
extensions: $(EXT)/.done

# The extensions are packages; qod checks their digests when it takes them over.
$(EXT)/.done: | $(VENV)/.done
	@mkdir -p $(EXT)/wheels
	@for x in ducklake postgres-scanner tpch; do \
		$(VENV)/bin/pip download -q --no-deps -d $(EXT)/wheels duckdb-extension-$$x==$(DUCKDB) || exit 1; done
	@$(PYTHON) -c 'import glob,sys,zipfile;[zipfile.ZipFile(w).extractall(sys.argv[1]+"/unpacked") for w in glob.glob(sys.argv[1]+"/wheels/*.whl")]' $(EXT)
	@mkdir -p $(EXT)/v$(DUCKDB)/linux_amd64
	@cp $(EXT)/unpacked/*/extensions/v$(DUCKDB)/*.duckdb_extension $(EXT)/v$(DUCKDB)/linux_amd64/
	@rm -rf $(EXT)/unpacked $(EXT)/wheels && touch $@

$(VENV)/.done:
	@mkdir -p $(CACHE) && python3 -m venv $(VENV) && touch $@

.PHONY: clients
clients: $(VENV)/.clients $(JDBC) $(TOOLS)/jq

$(VENV)/.clients: test/clients/requirements.txt | $(VENV)/.done
	@$(VENV)/bin/pip install -q -r test/clients/requirements.txt && touch $@

$(JDBC):
	@mkdir -p $(CACHE)
	@mvn -q dependency:copy -Dartifact=org.apache.arrow:flight-sql-jdbc-driver:18.3.0 -DoutputDirectory=$(CACHE)

$(TOOLS)/jq:
	@GOBIN=$(TOOLS) $(GO) install github.com/itchyny/gojq/cmd/gojq@v0.12.17 && mv $(TOOLS)/gojq $@

$(CACHE)/tfplugindocs:
	@GOBIN=$(CACHE) $(GO) install github.com/hashicorp/terraform-plugin-docs/cmd/tfplugindocs@v0.25.0

$(CACHE)/tofu: test/tofu/go.mod test/tofu/go.sum
	@mkdir -p $(CACHE)
	CGO_ENABLED=0 $(GO) build -C test/tofu -trimpath -ldflags "-s -w" -o $@ github.com/opentofu/opentofu/cmd/tofu

$(CACHE)/staticcheck:
	@GOBIN=$(CACHE) $(GO) install honnef.co/go/tools/cmd/staticcheck@v0.8.2
