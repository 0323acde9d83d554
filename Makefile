# Builds, runs and tests keydb-server. On a fresh machine `make run` or `make test` is all one types.
#
#   make [all]       the server and the tools, into build/$(BUILD); the unit test programs, too, where cmocka is
#   make run         build and run the server          ARGS="--port 7000 --server-threads 2"
#   make test        unit, integration, differential tests, a short stress; some minutes
#   make check       lint, tidy, instruction counts, the long suites, and the core of the tests under the thread and the
#                    address sanitizer
#   make campaign    everything else: whole suites under sanitizers, fuzzing, long stress, real clients
#   make lint        layering, headers, layout
#   make tidy        clang-tidy over what has changed since it passed last
#   make bench       measure beside Redis
#   make install     PREFIX=/usr/local DESTDIR= SYSCONFDIR= REDIS_LINKS=no
#   make deb         a Debian package (REDIS_LINKS=yes: in place of Redis')
#   make clean       what was built (distclean: also what was downloaded)
#   make unit | merge | integration | differential | replication | active | cli | long | stress | conformance | fault | badinput | clients | fuzz | package | docs | instructions      one group of tests
#
# Variants: BUILD=release (default), debug, asan, tsan, fuzz, valgrind. CC=clang works too. LTO=1 for link-time optimization.
# New files need no mention here: src/FOLDER/NAME.c or src/FOLDER/ROOM/NAME.c belongs to the library, NAME_test.c beside
# it is a unit test program, src/tools/NAME.c a tool, src/tools/ROOM/NAME.c a part that tools are linked with,
# tests/fuzz/NAME.c a fuzz target.

BUILD ?= release
OUT ?= build/$(BUILD)
comma := ,
PREFIX ?= /usr/local
SYSCONFDIR ?= $(if $(filter /usr,$(PREFIX)),/etc,$(PREFIX)/etc)
UNITDIR ?= $(if $(filter /usr,$(PREFIX)),/lib,$(PREFIX)/lib)/systemd/system
ARGS ?=
LTO ?= 0
FUZZ_SECONDS ?= 30
ORACLE ?= build/oracle/redis-server

ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(BUILD),fuzz)
override CC := clang
endif
# Debian names its clang after the version.
ifeq ($(CC),clang)
override CC := $(if $(shell command -v clang),clang,clang-14)
endif
CC_IS_CLANG := $(findstring clang,$(CC))

# make -n, -q and -t only tell what would be done; so nothing is installed or written on the way either. Their letters
# are in the first word of MAKEFLAGS, as long as nobody has added to it.
DRY_RUN := $(strip $(foreach letter,n q t,$(findstring $(letter),$(filter-out --%,$(firstword -$(MAKEFLAGS))))))

# Parallel unless told otherwise; steps that test or measure are serial by themselves.
# A make called by ours shares its caller's job slots.
ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 2)
endif
MAKEFLAGS += --no-builtin-rules --no-print-directory
.SUFFIXES:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

# ---------------------------------------------------------------------------------------------------------------
# Flags

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wcast-qual -Wvla \
    -Wundef -Wformat=2 -Wwrite-strings -Wold-style-definition -Wnull-dereference -Werror
# clang follows locks through annotated functions. It tells, but does not stop the build: what it cannot follow (a lock
# handed on in a struct) is not wrong.
ifneq ($(CC_IS_CLANG),)
WARNINGS += -Wthread-safety -Wno-error=thread-safety-analysis
endif

# _GNU_SOURCE is defined empty so that a file which defines it itself repeats the same definition.
CPPFLAGS_ALL := -Isrc -D_GNU_SOURCE=
CFLAGS_ALL := -std=gnu11 -g -fno-omit-frame-pointer -pthread $(WARNINGS)
LDFLAGS_ALL := -pthread -Wl,--as-needed -rdynamic

# gcc's flow warnings see ghosts in instrumented code; the release build has them all.
SANITIZER_FLAGS := -O1 -fno-sanitize-recover=all -Wno-null-dereference
ifeq ($(CC_IS_CLANG),)
SANITIZER_FLAGS += -Wno-maybe-uninitialized
endif

ifeq ($(BUILD),release)
CFLAGS_ALL += -O2
else ifeq ($(BUILD),debug)
CFLAGS_ALL += -O1
CPPFLAGS_ALL += -DKEYDB_DEBUG
else ifeq ($(BUILD),asan)
SANITIZE := -fsanitize=address,undefined
else ifeq ($(BUILD),tsan)
SANITIZE := -fsanitize=thread
else ifeq ($(BUILD),fuzz)
SANITIZE := -fsanitize=fuzzer-no-link,address,undefined
else ifeq ($(BUILD),valgrind)
CFLAGS_ALL += -O1
CPPFLAGS_ALL += -DMEM_LIBC -DKEYDB_DEBUG
else
$(error BUILD=$(BUILD) is none of release, debug, asan, tsan, fuzz, valgrind)
endif
ifneq ($(SANITIZE),)
CFLAGS_ALL += $(SANITIZER_FLAGS) $(SANITIZE)
CPPFLAGS_ALL += -DMEM_LIBC -DKEYDB_DEBUG
LDFLAGS_ALL += $(subst fuzzer-no-link$(comma),,$(SANITIZE))
endif
ifeq ($(LTO),1)
CFLAGS_ALL += -flto=auto
LDFLAGS_ALL += -flto=auto -O2
endif

# Libraries: each by pkg-config, into $(OUT)/libraries.mk, which make writes first (installing what the build needs and
# is missing) and then reads. HAVE_LIBURING and HAVE_LIBSYSTEMD are defined where those are there. The sanitizers and
# valgrind bring their own malloc, hence no jemalloc with them.
LIBRARIES := $(if $(SANITIZE)$(filter valgrind,$(BUILD)),,jemalloc) openssl liblzf luajit libxxhash
OPTIONAL_LIBRARIES := liburing libsystemd libmicrohttpd

NO_BUILD_GOALS := clean distclean lint help
ifneq ($(filter-out $(NO_BUILD_GOALS),$(or $(MAKECMDGOALS),all)),)
NEEDS_BUILD := 1
endif

ifdef NEEDS_BUILD
-include $(OUT)/libraries.mk

ifndef DRY_RUN
ifneq ($(shell deps/install.sh build >&2 && echo fine),fine)
$(error the build needs packages that are not here, see above)
endif

$(OUT)/libraries.mk: deps/packages Makefile
	@mkdir -p $(@D)
	@{  have=; defines=; \
	    for library in $(OPTIONAL_LIBRARIES); do \
	        pkg-config --exists $$library || continue; \
	        have="$$have $$library"; \
	        defines="$$defines -DHAVE_$$(echo $$library | tr a-z A-Z)"; \
	    done; \
	    echo "LIBRARY_CPPFLAGS := $$defines $$(pkg-config --cflags $(LIBRARIES) $$have)"; \
	    echo "LIBRARY_LIBS := $$(pkg-config --libs $(LIBRARIES) $$have) -lm"; \
	} > $@
endif
endif

ALL_CPPFLAGS = $(CPPFLAGS_ALL) $(LIBRARY_CPPFLAGS) $(CPPFLAGS)
COMPILE = $(CC) $(ALL_CPPFLAGS) $(CFLAGS_ALL) $(CFLAGS)
LINK = $(CC) $(CFLAGS_ALL) $(CFLAGS) $(LDFLAGS_ALL) $(LDFLAGS)

# ---------------------------------------------------------------------------------------------------------------
# What there is

SOURCES := $(sort $(wildcard src/*/*.c src/*/*/*.c))
TEST_SOURCES := $(filter %_test.c,$(SOURCES))
# A tool is one file; what is too large for that, or shared by tools, stands in rooms and is linked with each of them.
TOOL_SOURCES := $(filter-out %_test.c,$(sort $(wildcard src/tools/*.c)))
TOOL_ROOM_SOURCES := $(filter-out %_test.c,$(sort $(wildcard src/tools/*/*.c)))
# These define functions of libc. So they are linked only to the unit tests that include base/power_cut.h, and to the
# library for LD_PRELOAD of tests/fault.
POWER_CUT_SOURCES := $(filter-out %_test.c,$(filter src/base/power_cut%,$(SOURCES)))
POWER_CUT_TESTS := $(if $(POWER_CUT_SOURCES),$(shell grep -l 'base/power_cut.h' $(TEST_SOURCES)))
PRELOAD_SOURCES := $(if $(POWER_CUT_SOURCES),$(wildcard tests/fault/preload.c) $(POWER_CUT_SOURCES))
LIBRARY_SOURCES := $(filter-out $(TEST_SOURCES) $(POWER_CUT_SOURCES) src/tools/%,$(SOURCES))
MAIN_SOURCES := $(wildcard src/main.c)
BENCH_SOURCES := $(wildcard tests/bench/load.c tests/bench/handshakes.c tests/bench/floor_tls.c tests/bench/scaling.c)
FUZZ_SOURCES := $(sort $(wildcard tests/fuzz/*.c))

object = $(patsubst %.c,$(OUT)/obj/%.o,$(1))
LIBRARY := $(OUT)/libkeydb.a
TOOL_LIBRARY := $(OUT)/libtools.a
SERVER := $(OUT)/bin/keydb-server
TOOLS := $(TOOL_SOURCES:src/tools/%.c=$(OUT)/bin/%)
UNIT_TESTS := $(TEST_SOURCES:src/%.c=$(OUT)/test/%)
FUZZERS := $(FUZZ_SOURCES:tests/fuzz/%.c=build/fuzz/fuzz/%)
# Programs of tests/bench that use our libraries; the others are built where they are run.
BENCHES := $(BENCH_SOURCES:tests/bench/%.c=$(OUT)/bench/%)
PROGRAMS := $(if $(MAIN_SOURCES),$(SERVER)) $(TOOLS)
breakable = $(patsubst %.c,$(OUT)/obj/breakable/%.o,$(1))
PRELOAD := $(if $(PRELOAD_SOURCES),$(OUT)/test/fault.so)
# The simulation has the rules built for itself, with switches that break them.
MERGE_SIM_SOURCES := $(sort $(wildcard tests/merge/*.c)) $(filter src/merge/%,$(LIBRARY_SOURCES))
MERGE_SIM := $(if $(wildcard tests/merge/main.c),$(OUT)/test/merge_sim)

# A build asks for no package that only tests need. Where cmocka is anyway, it also builds the unit tests, which link
# nothing else of those.
HAVE_CMOCKA := $(if $(NEEDS_BUILD),$(shell pkg-config --exists cmocka 2>/dev/null && echo yes))
CMOCKA := $(if $(HAVE_CMOCKA),,test-packages)

.PHONY: all programs unit-tests FORCE
all: $(LIBRARY) programs $(if $(HAVE_CMOCKA),unit-tests)
unit-tests: $(UNIT_TESTS)
programs: $(PROGRAMS) $(PRELOAD) $(BENCHES) $(MERGE_SIM)

# ---------------------------------------------------------------------------------------------------------------
# Compiling and linking. What is built depends on how: a file whose content changes with the flags, another that
# changes with the list of sources.

$(OUT)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(COMPILE) | $(LINK) $(LIBRARY_LIBS)' | cmp -s - $@ || \
	    echo '$(COMPILE) | $(LINK) $(LIBRARY_LIBS)' > $@
$(OUT)/sources: FORCE
	@mkdir -p $(@D)
	@echo '$(LIBRARY_SOURCES) $(TOOL_ROOM_SOURCES)' | cmp -s - $@ || \
	    echo '$(LIBRARY_SOURCES) $(TOOL_ROOM_SOURCES)' > $@

$(OUT)/obj/%.o: %.c $(OUT)/flags
	@mkdir -p $(@D)
	@echo "  compile $(BUILD) $<"
	@$(COMPILE) $(FLAGS_OF_FILE) -MMD -MP -c $< -o $@

# The page is a file of its own, which the object takes in as bytes.
$(OUT)/obj/src/metrics/page.o: src/metrics/page.html

$(OUT)/obj/breakable/%.o: %.c $(OUT)/flags
	@mkdir -p $(@D)
	@echo "  compile $(BUILD) $< (breakable)"
	@$(COMPILE) -DMERGE_BREAKABLE -MMD -MP -c $< -o $@

# An error of Lua leaves C functions without their exit, which the thread sanitizer would wait for on its stack of calls
# until there is no room left on that.
ifeq ($(BUILD),tsan)
$(OUT)/obj/src/script/%.o: FLAGS_OF_FILE := $(if $(CC_IS_CLANG),-mllvm -tsan-instrument-func-entry-exit=0,\
    --param=tsan-instrument-func-entry-exit=0)
endif
# Sanitizers call mkdir, which is ours here, before they are set up.
ifneq ($(SANITIZE),)
$(call object,$(POWER_CUT_SOURCES)): FLAGS_OF_FILE := -fno-sanitize=all
endif

$(LIBRARY): $(call object,$(LIBRARY_SOURCES)) $(OUT)/sources
$(TOOL_LIBRARY): $(call object,$(TOOL_ROOM_SOURCES)) $(OUT)/sources
$(LIBRARY) $(TOOL_LIBRARY):
	@rm -f $@
	@ar rcs $@ $(filter %.o,$^)

define link_program
@mkdir -p $(@D)
@echo "  link    $(BUILD) $@"
@$(LINK) $(filter %.o,$^) $(filter $(TOOL_LIBRARY),$^) $(LIBRARY) $(LIBRARY_LIBS) $(1) -o $@
endef

$(SERVER): $(call object,src/main.c) $(LIBRARY)
	$(call link_program)
$(BENCHES): $(OUT)/bench/%: $(OUT)/obj/tests/bench/%.o $(LIBRARY)
	$(call link_program)
$(TOOLS): $(OUT)/bin/%: $(OUT)/obj/src/tools/%.o $(TOOL_LIBRARY) $(LIBRARY)
	$(call link_program)
$(MERGE_SIM): $(call breakable,$(MERGE_SIM_SOURCES)) $(LIBRARY)
	$(call link_program)
$(POWER_CUT_TESTS:src/%.c=$(OUT)/test/%): $(call object,$(POWER_CUT_SOURCES))
$(filter $(OUT)/test/tools/%,$(UNIT_TESTS)): $(TOOL_LIBRARY)
$(UNIT_TESTS): $(OUT)/test/%: $(OUT)/obj/src/%.o $(LIBRARY) | $(CMOCKA)
	$(call link_program,-lcmocka -ldl)
# It has no sanitizers, but programs that have them can load it.
$(PRELOAD): $(PRELOAD_SOURCES) $(wildcard src/base/power_cut*.h) src/base/fault.h src/base/compiler.h $(OUT)/flags
	@mkdir -p $(@D)
	@echo "  link    $(BUILD) $@"
	@$(CC) $(CPPFLAGS_ALL) -std=gnu11 -g -O2 -fPIC -shared $(WARNINGS) $(PRELOAD_SOURCES) -ldl -o $@
ifeq ($(BUILD),fuzz)
$(FUZZERS): $(OUT)/fuzz/%: $(OUT)/obj/tests/fuzz/%.o $(TOOL_LIBRARY) $(LIBRARY)
	$(call link_program,-fsanitize=fuzzer)
endif
$(call object,$(TEST_SOURCES)): | $(CMOCKA)

ALL_OBJECTS := $(call object,$(SOURCES) $(MAIN_SOURCES) $(BENCH_SOURCES) $(FUZZ_SOURCES)) \
    $(call breakable,$(MERGE_SIM_SOURCES))
.SECONDARY: $(ALL_OBJECTS)
ifdef NEEDS_BUILD
-include $(ALL_OBJECTS:.o=.d)
endif

# ---------------------------------------------------------------------------------------------------------------
# Running and testing. tests/run.sh knows how a group of tests is run and counts its results; here is only what it
# needs beforehand. Sanitized variants get more patience there.

.PHONY: run test check campaign image bench lint tidy tidy-all help test-packages check-packages campaign-packages oracle
.PHONY: unit merge integration differential replication active cli badinput long stress conformance fault clients fuzz fuzzers valgrind package docs instructions
.PHONY: core-groups whole-groups install deb clean distclean

run: programs
	@exec $(SERVER) $(ARGS)

test-packages:
	@deps/install.sh test
check-packages:
	@deps/install.sh test check
campaign-packages:
	@deps/install.sh campaign
oracle: | test-packages
	@[ -x $(ORACLE) ] || deps/oracle.sh

RUN_TESTS = @BUILD=$(BUILD) OUT=$(OUT) ORACLE=$(ORACLE) FUZZ_SECONDS=$(FUZZ_SECONDS) MAKE="$(MAKE)" tests/run.sh
# The script calls make again, which shares the job slots of this one when the line begins with a plus. Such lines are
# run by make -n as well, hence not then.
SHARE_JOBS := $(if $(DRY_RUN),,+)

test: all unit-tests oracle
	$(RUN_TESTS) --level short make docs unit merge integration differential replication active cli stress conformance fault

unit: all unit-tests | test-packages
	$(RUN_TESTS) unit
integration merge stress fault valgrind package: programs | test-packages
	$(RUN_TESTS) $@
instructions: programs | check-packages
	$(RUN_TESTS) $@
differential replication active cli badinput long docs: programs oracle
	$(RUN_TESTS) $@
conformance: programs oracle
	$(RUN_TESTS) --level whole $@
clients: programs oracle | test-packages campaign-packages
	$(RUN_TESTS) $@
fuzz: | campaign-packages
	$(SHARE_JOBS)$(RUN_TESTS) $@
fuzzers: $(if $(filter fuzz,$(BUILD)),$(FUZZERS))

# A build that fails counts as a failed test in check and campaign, hence these are run by the script, too.
# Fuzz targets are linked with libFuzzer alone, but must always fit the code: one of the builds compiles them.
core-groups: all unit-tests oracle $(if $(filter asan,$(BUILD)),$(call object,$(FUZZ_SOURCES)))
	$(RUN_TESTS) --level core unit merge integration differential replication active cli stress
whole-groups: all unit-tests oracle
	$(RUN_TESTS) --level whole make docs unit merge integration differential replication active cli badinput stress conformance fault package
check: | check-packages
	$(SHARE_JOBS)$(RUN_TESTS) --sum lint tidy instructions long tsan-core asan-core
campaign: | check-packages campaign-packages
	$(SHARE_JOBS)$(RUN_TESTS) --sum tidy-all clang fuzz clients valgrind release-whole tsan-whole asan-whole

image: programs
	@python3 tests/image/run.py --out $(OUT)

lint: | check-packages
	@python3 utils/lint.py
tidy tidy-all: | check-packages
	@python3 utils/tidy.py $(if $(findstring all,$@),--all) $(ARGS)

bench: programs oracle | check-packages
	@tests/bench/run --server $(SERVER) --oracle $(ORACLE) $(ARGS)

help:
	@sed -n '3,21s/^# \{0,1\}//p' Makefile

# ---------------------------------------------------------------------------------------------------------------

# What is installed stands in lists that are made from what is there: programs, manuals, completion. The administrator's
# own configuration stays when there is one. REDIS_LINKS=yes adds each program under its name in Redis, too.
CONFIG_FILE := $(SYSCONFDIR)/keydb/keydb.conf
REDIS_LINKS ?= no
MANUALS := $(wildcard docs/man/*.1)
COMPLETIONS := $(wildcard utils/completion/*.bash)
BIN_DIR := $(DESTDIR)$(PREFIX)/bin
MAN_DIR := $(DESTDIR)$(PREFIX)/share/man/man1
COMPLETION_DIR := $(DESTDIR)$(PREFIX)/share/bash-completion/completions
ifeq ($(filter yes no,$(REDIS_LINKS)),)
$(error REDIS_LINKS=$(REDIS_LINKS) is neither yes nor no)
endif
install: programs
	install -d $(BIN_DIR) $(MAN_DIR) $(COMPLETION_DIR) $(DESTDIR)$(SYSCONFDIR)/keydb $(DESTDIR)$(SYSCONFDIR)/logrotate.d \
	    $(DESTDIR)$(UNITDIR) $(DESTDIR)$(PREFIX)/lib/sysusers.d $(DESTDIR)$(PREFIX)/lib/tmpfiles.d
	install -m 755 $(PROGRAMS) $(BIN_DIR)
	install -m 644 $(MANUALS) $(MAN_DIR)
	for file in $(COMPLETIONS); do \
	    install -m 644 $$file $(COMPLETION_DIR)/$$(basename $$file .bash) || exit 1; \
	done
	[ -e $(DESTDIR)$(CONFIG_FILE) ] || install -m 644 keydb.conf $(DESTDIR)$(CONFIG_FILE)
	[ -e $(DESTDIR)$(SYSCONFDIR)/logrotate.d/keydb ] || \
	    install -m 644 utils/logrotate/keydb $(DESTDIR)$(SYSCONFDIR)/logrotate.d/keydb
	sed 's,@PREFIX@,$(PREFIX),g; s,@CONFIG_FILE@,$(CONFIG_FILE),g; s,@CONFIG_DIR@,$(patsubst %/,%,$(dir $(CONFIG_FILE))),g' \
	    utils/systemd/keydb-server.service > $(DESTDIR)$(UNITDIR)/keydb-server.service
	chmod 644 $(DESTDIR)$(UNITDIR)/keydb-server.service
	install -m 644 utils/systemd/keydb.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/keydb.conf
	install -m 644 utils/systemd/keydb.tmpfiles $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/keydb.conf
ifeq ($(REDIS_LINKS),yes)
	for name in $(patsubst keydb-%,%,$(notdir $(PROGRAMS))); do ln -sf keydb-$$name $(BIN_DIR)/redis-$$name || exit 1; done
endif

# A package for the Debian that this runs on, below $(OUT)/deb.
deb: programs
	@OUT=$(OUT) REDIS_LINKS=$(REDIS_LINKS) MAKE="$(MAKE)" utils/deb/build.sh

clean:
	rm -rf build/release build/debug build/asan build/tsan build/fuzz build/valgrind build/clang build/lint build/results $(OUT)
distclean:
	rm -rf build
