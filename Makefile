# Caisson.  `make help` lists the targets.
#
# One tree of objects per variant: release (build/), test (build/test/, the same
# code with the switches that the attack tests' positive controls need) and asan.

VERSION   := 0.1.0
PREFIX    ?= /usr/local
DESTDIR   ?=
CC        := gcc
PKGS      := gcc make libc6-dev libyaml-dev pkg-config python3

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 -Wundef \
	-Wpointer-arith -Wwrite-strings -Wimplicit-fallthrough -Wduplicated-cond -Wlogical-op -Wjump-misses-init
HARDEN := -D_FORTIFY_SOURCE=3 -fstack-protector-strong -fstack-clash-protection -fcf-protection=full \
	-ftrivial-auto-var-init=zero
BASEFLAGS := -std=gnu17 -D_GNU_SOURCE -DCAISSON_VERSION='"$(VERSION)"' -Isrc -Ibuild -MMD -MP $(WARN) $(WERROR)
CFLAGS  ?= -O2 -g
LDFLAGS ?=

SRCS      := $(sort $(wildcard src/*/*.c src/*/*/*.c))
LIB_SRCS  := $(filter-out src/cli/main.c,$(SRCS))
GEN       := build/gen/seccomp_filter.h build/gen/profiles.inc

# Static: `caisson run` must not pay for a dynamic linker, and the launcher goes
# on running inside a root where no library of the host is to be found.
rel_FLAGS  := $(CFLAGS) $(HARDEN) -fPIE
rel_LINK   := -static-pie -Wl,-z,relro,-z,now,-z,noexecstack
test_FLAGS := $(rel_FLAGS) -DCS_TEST_SWITCHES
test_LINK  := $(rel_LINK)
asan_FLAGS := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all -DCS_TEST_SWITCHES -DCS_ASAN
asan_LINK  := -fsanitize=address,undefined
LIBS       := -lyaml -lm

rel_DIR  := build/obj
test_DIR := build/test/obj
asan_DIR := build/asan/obj

.DELETE_ON_ERROR:
.PHONY: all
all: build/caisson

define variant
$(1)_OBJS := $$(SRCS:src/%.c=$$($(1)_DIR)/%.o)
$$($(1)_DIR)/%.o: src/%.c | $$(GEN)
	@mkdir -p $$(@D)
	$$(CC) $$(BASEFLAGS) $$($(1)_FLAGS) -c $$< -o $$@
-include $$($(1)_OBJS:.o=.d)
endef
$(foreach v,rel test asan,$(eval $(call variant,$(v))))

build/caisson: $(rel_OBJS)
	$(CC) $(rel_FLAGS) $(rel_LINK) $(LDFLAGS) -o $@ $^ $(LIBS)
build/test/caisson: $(test_OBJS)
	$(CC) $(test_FLAGS) $(test_LINK) $(LDFLAGS) -o $@ $^ $(LIBS)
build/asan/caisson: $(asan_OBJS)
	$(CC) $(asan_FLAGS) $(asan_LINK) $(LDFLAGS) -o $@ $^ $(LIBS)

# The system-call filter is compiled when we are, not when a sandbox starts.
build/gen/seccomp_filter.h: tools/gen_seccomp.c src/sandbox/native/syscalls.h
	@mkdir -p $(@D) build/tools
	$(CC) -std=gnu17 -D_GNU_SOURCE -O1 -g $(WARN) -Isrc -o build/tools/gen_seccomp tools/gen_seccomp.c
	build/tools/gen_seccomp > $@

# So are the built-in profiles, by the parser that reads everybody else's.
PROFILE_SRCS := $(filter-out src/profile/builtin.c,$(wildcard src/profile/*.c)) $(wildcard src/base/*.c)
build/gen/profiles.inc: tools/gen_profiles.c $(PROFILE_SRCS) $(wildcard src/profile/*.h) $(sort $(wildcard profiles/*.yaml))
	@mkdir -p $(@D) build/tools
	$(CC) -std=gnu17 -D_GNU_SOURCE -O1 -g $(WARN) -Isrc -o build/tools/gen_profiles tools/gen_profiles.c $(PROFILE_SRCS) $(LIBS)
	build/tools/gen_profiles profiles/default.yaml profiles/offline.yaml profiles/coding.yaml profiles/strict.yaml > $@
