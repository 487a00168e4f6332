# Caisson.  `make help` lists the targets.
#
# One tree of objects per variant: release (build/), test (build/test/, the same
# code with the switches that the attack tests' positive controls need) and asan.

VERSION   := 0.4.0
PREFIX    ?= /usr/local
DESTDIR   ?=
CC        := gcc
PKGS      := gcc make libc6-dev linux-libc-dev libyaml-dev musl-tools python3 libssl-dev libnghttp2-dev libc-ares-dev \
	libpcre2-dev

# musl, statically: see src/base/compat.h.  The kernel's headers come after musl's own.
MULTIARCH := $(shell $(CC) -print-multiarch)
MUSL      := musl-gcc -idirafter /usr/include -idirafter /usr/include/$(MULTIARCH)
LIB_A     := $(addprefix /usr/lib/$(MULTIARCH)/,libyaml.a libpcre2-8.a)
# musl-gcc knows no static-pie; its parts do.
MUSL_DIR  := /usr/lib/$(MULTIARCH:-gnu=-musl)
GCC_FILE   = $(shell $(CC) -print-file-name=$(1))
PIE_START := $(MUSL_DIR)/rcrt1.o $(MUSL_DIR)/crti.o $(call GCC_FILE,crtbeginS.o)
PIE_END   := $(MUSL_DIR)/libc.a $(call GCC_FILE,libgcc.a) $(call GCC_FILE,libgcc_eh.a) $(MUSL_DIR)/libc.a \
	$(call GCC_FILE,crtendS.o) $(MUSL_DIR)/crtn.o

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 -Wundef \
	-Wpointer-arith -Wwrite-strings -Wimplicit-fallthrough -Wduplicated-cond -Wlogical-op -Wjump-misses-init
HARDEN := -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fstack-clash-protection -fcf-protection=full \
	-ftrivial-auto-var-init=zero
BASEFLAGS := -std=gnu17 -D_GNU_SOURCE -DCAISSON_VERSION='"$(VERSION)"' -Isrc -Ibuild -MMD -MP $(WARN) $(WERROR)
CFLAGS  ?= -O2 -g
LDFLAGS ?=

# The network boundary is a program of its own, caisson-edge: it alone needs TLS,
# HTTP/2 and a resolver, and those come as shared libraries.
EDGE_SRCS := $(sort $(wildcard src/egress/edge/*.c))
SRCS      := $(filter-out $(EDGE_SRCS),$(sort $(wildcard src/*/*.c src/*/*/*.c)))
# Profiles hold rows of the table of commands, and are refused if those cannot be read.
ROWS_SRCS := $(sort $(wildcard src/shell/table_rows*.c)) src/shell/rows_check.c
EDGE_USES := $(filter src/base/% src/sys/% src/netpolicy/% src/profile/% src/egress/%,$(SRCS)) $(ROWS_SRCS)
EDGE_LIBS := -lssl -lcrypto -lnghttp2 -lcares -lyaml -lm
LIB_SRCS  := $(filter-out src/cli/main.c,$(SRCS))
GEN       := build/gen/seccomp_filter.h build/gen/profiles.inc build/gen/shell_table.inc

# Static: `caisson run` must not pay for a dynamic linker, and the launcher goes
# on running inside a root where no library of the host is to be found.
rel_CC     := $(MUSL)
rel_FLAGS  := $(CFLAGS) $(HARDEN) -fPIE
rel_LINK   := -nostartfiles -nodefaultlibs -static-pie -Wl,-z,relro,-z,now,-z,noexecstack $(PIE_START)
test_CC    := $(MUSL)
test_FLAGS := $(rel_FLAGS) -DCS_TEST_SWITCHES
test_LINK  := $(rel_LINK)
rel_LIBS   := $(LIB_A) $(PIE_END)
test_LIBS  := $(rel_LIBS)
asan_CC    := $(CC)
asan_FLAGS := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all -DCS_TEST_SWITCHES -DCS_ASAN
asan_LINK  := -fsanitize=address,undefined
asan_LIBS  := -lyaml -lpcre2-8 -lm
LIBS       := -lyaml -lm
edge_CC    := $(CC)
edge_FLAGS := $(CFLAGS) $(HARDEN) -fPIE
edge_LINK  := -pie -Wl,-z,relro,-z,now,-z,noexecstack,--as-needed
edgetest_CC    := $(CC)
edgetest_FLAGS := $(edge_FLAGS) -DCS_TEST_SWITCHES
edgetest_LINK  := $(edge_LINK)

rel_DIR  := build/obj
test_DIR := build/test/obj
asan_DIR := build/asan/obj
edge_DIR := build/edge/obj
edgetest_DIR := build/test/edge/obj

# `make V=1` shows the commands.
ifneq ($(V),1)
say = @printf '  %-5s %s\n' $(1) $(2);
endif

.DELETE_ON_ERROR:
.PHONY: all
all: build/caisson build/caisson-edge

rel_SRCS  := $(SRCS)
test_SRCS := $(SRCS)
asan_SRCS := $(SRCS) $(EDGE_SRCS)
edge_SRCS := $(EDGE_USES) $(EDGE_SRCS)
edgetest_SRCS := $(edge_SRCS)

define variant
$(1)_OBJS := $$($(1)_SRCS:src/%.c=$$($(1)_DIR)/%.o)
$$($(1)_DIR)/%.o: src/%.c Makefile | $$(GEN)
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)$$($(1)_CC) $$(BASEFLAGS) $$($(1)_FLAGS) -c $$< -o $$@
-include $$($(1)_OBJS:.o=.d)
endef
$(foreach v,rel test asan edge edgetest,$(eval $(call variant,$(v))))

build/caisson: $(rel_OBJS)
	$(call say,LINK,$@)$(CC) $(rel_FLAGS) $(rel_LINK) $(LDFLAGS) -o $@ $^ $(rel_LIBS)
build/test/caisson: $(test_OBJS)
	$(call say,LINK,$@)$(CC) $(test_FLAGS) $(test_LINK) $(LDFLAGS) -o $@ $^ $(test_LIBS)
build/asan/caisson: $(SRCS:src/%.c=$(asan_DIR)/%.o)
	$(call say,LINK,$@)$(asan_CC) $(asan_FLAGS) $(asan_LINK) $(LDFLAGS) -o $@ $^ $(asan_LIBS)
build/caisson-edge: $(edge_OBJS)
	$(call say,LINK,$@)$(CC) $(edge_FLAGS) $(edge_LINK) $(LDFLAGS) -o $@ $^ $(EDGE_LIBS)
build/test/caisson-edge: $(edgetest_OBJS)
	$(call say,LINK,$@)$(CC) $(edgetest_FLAGS) $(edgetest_LINK) $(LDFLAGS) -o $@ $^ $(EDGE_LIBS)
build/asan/caisson-edge: $(edge_SRCS:src/%.c=$(asan_DIR)/%.o)
	$(call say,LINK,$@)$(asan_CC) $(asan_FLAGS) $(asan_LINK) $(LDFLAGS) -o $@ $^ $(EDGE_LIBS)

# The system-call filter is compiled when we are, not when a sandbox starts.
build/gen/seccomp_filter.h: tools/gen_seccomp.c src/sandbox/native/syscalls.h
	@mkdir -p $(@D) build/tools
	$(call say,TOOL,$@)$(CC) -std=gnu17 -D_GNU_SOURCE -O1 -g $(WARN) -Isrc -o build/tools/gen_seccomp tools/gen_seccomp.c
	@build/tools/gen_seccomp > $@

# So are the built-in profiles, by the parser that reads everybody else's.
PROFILE_SRCS := $(filter-out src/profile/builtin.c,$(wildcard src/profile/*.c)) $(wildcard src/base/*.c src/netpolicy/*.c) $(ROWS_SRCS)
build/gen/profiles.inc: tools/gen_profiles.c $(PROFILE_SRCS) $(wildcard src/profile/*.h) $(sort $(wildcard profiles/*.yaml))
	@mkdir -p $(@D) build/tools
	$(call say,TOOL,$@)$(CC) -std=gnu17 -D_GNU_SOURCE -O1 -g $(WARN) -Isrc -o build/tools/gen_profiles tools/gen_profiles.c $(PROFILE_SRCS) $(LIBS)
	@build/tools/gen_profiles profiles/default.yaml profiles/offline.yaml profiles/coding.yaml profiles/strict.yaml > $@

# And the table of commands, by the parser that reads the rows of profiles.
TABLE_SRCS := src/shell/table_rows.c $(wildcard src/base/*.c)
TABLE_ROWS := $(sort $(wildcard src/shell/table/*.rows))
build/gen/shell_table.inc: tools/gen_shell_table.c $(TABLE_SRCS) src/shell/table.h src/shell/table_internal.h $(TABLE_ROWS)
	@mkdir -p $(@D) build/tools
	$(call say,TOOL,$@)$(CC) -std=gnu17 -D_GNU_SOURCE -O1 -g $(WARN) -Isrc -o build/tools/gen_shell_table tools/gen_shell_table.c $(TABLE_SRCS) $(LIBS)
	@build/tools/gen_shell_table $(TABLE_ROWS) > $@

# ---- tests ----

UNIT       := $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/test_*.c))
FUZZ       := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
TESTFLAGS  := -std=gnu17 -D_GNU_SOURCE -DCAISSON_VERSION='"$(VERSION)"' -Isrc -Ibuild -Itests -O1 -g -Wall -Wextra -Wshadow
HARNESS    := tests/harness/t.c tests/harness/t.h
lib_of      = $(filter-out %/cli/main.o %/egress/edge/main.o,$($(1)_OBJS))

build/test/unit/%: tests/unit/%.c $(HARNESS) $(call lib_of,test)
	@mkdir -p $(@D)
	$(call say,TEST,$@)$(MUSL) $(TESTFLAGS) -DCS_TEST_SWITCHES -static -no-pie -o $@ $< tests/harness/t.c $(call lib_of,test) $(LIB_A)
build/asan/unit/%: tests/unit/%.c $(HARNESS) $(call lib_of,asan)
	@mkdir -p $(@D)
	$(call say,TEST,$@)$(CC) $(TESTFLAGS) $(asan_FLAGS) -o $@ $< tests/harness/t.c $(call lib_of,asan) $(EDGE_LIBS) $(asan_LIBS)
# Of the boundary's parts: with its libraries, always under the sanitizers.
EDGE_UNIT  := $(patsubst tests/edge/%.c,%,$(wildcard tests/edge/test_*.c))
build/asan/edge/%: tests/edge/%.c $(HARNESS) $(call lib_of,asan)
	@mkdir -p $(@D)
	$(call say,TEST,$@)$(CC) $(TESTFLAGS) $(asan_FLAGS) -o $@ $< tests/harness/t.c $(call lib_of,asan) $(EDGE_LIBS) $(asan_LIBS)
# Scripts in, trees printed: for tests/shell/test_bash.py.
PARSE_SRCS := $(wildcard src/shell/parse*.c src/shell/word*.c) $(addprefix src/shell/,arena.c lex.c brace.c print.c same.c) src/base/buf.c src/base/err.c
build/test/parse_tool: tests/shell/parse_tool.c $(PARSE_SRCS) src/shell/syntax.h src/shell/internal.h src/shell/word.h
	@mkdir -p $(@D)
	$(call say,TEST,$@)$(CC) $(TESTFLAGS) -O2 -o $@ $< $(PARSE_SRCS)
# Patterns and strings in, answers out: for tests/rules/test_pattern.py.
PATTERN_SRCS := src/rules/pattern.c src/rules/pattern_smt.c $(addprefix src/base/,arena.c buf.c err.c)
build/test/pattern_tool: tests/rules/pattern_tool.c $(PATTERN_SRCS) src/rules/pattern.h src/rules/pattern_internal.h
	@mkdir -p $(@D)
	$(call say,TEST,$@)$(CC) $(TESTFLAGS) -fsanitize=address,undefined -o $@ $< $(PATTERN_SRCS)
# Hostile text, and how long it takes: release objects, since it is a matter of time.
build/bench/classify: bench/classify.c $(call lib_of,rel)
	@mkdir -p $(@D)
	$(call say,BENCH,$@)$(MUSL) $(TESTFLAGS) -static -no-pie -o $@ $< $(call lib_of,rel) $(LIB_A)
# The corpus runs as an ordinary test; `make fuzz` explores.
build/asan/fuzz/%: tests/fuzz/%.c tests/fuzz/replay.c $(call lib_of,asan)
	@mkdir -p $(@D)
	$(call say,TEST,$@)$(CC) $(TESTFLAGS) $(asan_FLAGS) -o $@ $< tests/fuzz/replay.c $(call lib_of,asan) $(EDGE_LIBS) $(asan_LIBS)

# Beside the boundary that it starts.
build/test/many: tests/net/many.c $(call lib_of,test)
	$(call say,TEST,$@)$(MUSL) $(TESTFLAGS) -static -no-pie -o $@ $< $(call lib_of,test) $(LIB_A)

.PHONY: deps test test-bins test-clients asan asan-bins lint bench bench-shell bench-classify try install deb fuzz clean help
# Installs what is missing, and says how where it may not.
deps:
	@scripts/install-deps $(PKGS) $(TEST_PKGS)
TEST_PKGS := z3 python3-yaml git procps strace util-linux tmux vim-tiny groff-base man-db binutils e2fsprogs mount iproute2 openssl curl ca-certificates

test-bins: build/caisson build/caisson-edge build/test/caisson build/test/caisson-edge build/test/many build/test/parse_tool build/test/pattern_tool build/asan/caisson-edge $(UNIT:%=build/test/unit/%) $(FUZZ:%=build/asan/fuzz/%) \
	$(EDGE_UNIT:%=build/asan/edge/%)
test: deps
	+@$(MAKE) --no-print-directory -j$$(nproc) test-bins
	@tests/run all

asan-bins: build/asan/caisson build/asan/caisson-edge $(UNIT:%=build/asan/unit/%) $(FUZZ:%=build/asan/fuzz/%)
asan: deps
	+@$(MAKE) --no-print-directory -j$$(nproc) asan-bins
	@tests/run asan

# Programs of others, in a sandbox, against servers of others, and agents with our hook; installs those that are missing.
test-clients: deps
	+@$(MAKE) --no-print-directory -j$$(nproc) all
	@tests/clients/run

try: deps
	+@$(MAKE) --no-print-directory -j$$(nproc) all
	@scripts/try

bench: deps
	+@$(MAKE) --no-print-directory -j$$(nproc) all build/test/caisson build/test/caisson-edge build/test/many
	@bench/run

# Every line that is called safe, and 5,000 of our own, are run: CS_SHELL_DATA says where the lines are.
bench-shell: deps
	+@$(MAKE) --no-print-directory -j$$(nproc) all
	@CS_SHELL=all tests/shell/test_sound.py

# Hostile text of 1 MiB, in every shape that we know.
bench-classify: build/bench/classify
	@build/bench/classify

fuzz: $(GEN)
	@mkdir -p build/fuzz
	for f in $(FUZZ); do clang $(TESTFLAGS) -fsanitize=fuzzer,address,undefined -o build/fuzz/$$f tests/fuzz/$$f.c \
		$(LIB_SRCS) $(filter-out %/main.c,$(EDGE_SRCS)) $(EDGE_LIBS) $(asan_LIBS) && build/fuzz/$$f -max_total_time=$${SECONDS_EACH:-60} -artifact_prefix=build/fuzz/ \
		build/fuzz/ tests/fuzz/corpus/$${f#fuzz_} || exit 1; done

LINT_PKGS := clang-tidy cppcheck shellcheck
lint: $(GEN)
	@scripts/install-deps $(PKGS) $(LINT_PKGS)
	scripts/check-layers
	@echo 'gcc -fanalyzer'; printf '%s\n' $(SRCS) $(EDGE_SRCS) | xargs -P "$$(nproc)" -I% $(CC) $(filter-out -MMD -MP,$(BASEFLAGS)) -O2 -fanalyzer -Werror -c % -o /dev/null
	@echo clang-tidy; printf '%s\n' $(SRCS) $(EDGE_SRCS) | xargs -P "$$(nproc)" -n 8 sh -c 'clang-tidy --quiet --warnings-as-errors="*" "$$@" -- \
		-std=gnu17 -D_GNU_SOURCE -DCAISSON_VERSION=\"\" -Isrc -Ibuild 2>/dev/null' clang-tidy
	@echo cppcheck; cppcheck --quiet -j "$$(nproc)" --error-exitcode=1 --std=c11 --enable=warning,portability --inline-suppr --suppress=missingIncludeSystem \
		-D__x86_64__ -DCAISSON_VERSION='""' -Isrc -Ibuild src
	@echo shellcheck; shellcheck --severity=warning $$(grep -lE '^#!/bin/(ba)?sh' -r scripts packaging tests/integration tests/escape tests/compat tests/clients bench) tests/run .ci/run

# ---- installing ----

DOCS := README.md ARCHITECTURE.md SECURITY.md CONTRIBUTING.md CHANGELOG.md
build/man: build/caisson $(wildcard man/*.in) scripts/make-man
	scripts/make-man $@
install: all build/man
	install -Dm755 build/caisson $(DESTDIR)$(PREFIX)/bin/caisson
	install -Dm755 build/caisson-edge $(DESTDIR)$(PREFIX)/libexec/caisson/caisson-edge
	install -Dm644 -t $(DESTDIR)$(PREFIX)/share/man/man1 build/man/*.1
	install -Dm644 -t $(DESTDIR)$(PREFIX)/share/man/man5 build/man/*.5
	install -Dm644 -t $(DESTDIR)$(PREFIX)/share/doc/caisson $(DOCS)
	install -Dm644 -t $(DESTDIR)$(PREFIX)/share/doc/caisson/docs docs/*.md
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions \
		$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	build/caisson completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/caisson
	build/caisson completion zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_caisson
	build/caisson completion fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/caisson.fish
deb: all build/man
	@scripts/install-deps dpkg-dev
	VERSION=$(VERSION) packaging/make-deb

clean:
	rm -rf build
help:
	@echo "make            release build, leaves build/caisson"
	@echo "make try        install what is missing, build, show the product"
	@echo "make test       install what is missing, build, run every test"
	@echo "make asan       the tests again, under AddressSanitizer and UBSan"
	@echo "make test-clients   curl, git, Java, ssh and others inside, against servers of others; Claude Code and Codex with our hook"
	@echo "make bench      the benchmarks, against bubblewrap, crun, runc, runsc, firejail"
	@echo "make bench-shell what classify calls safe is run, line by line"
	@echo "make bench-classify  how long hostile text takes"
	@echo "make lint       gcc -fanalyzer, clang-tidy, cppcheck, layers, shellcheck"
	@echo "make fuzz       explore the parsers with libFuzzer"
	@echo "make install    DESTDIR= PREFIX=; make deb: a Debian package"
