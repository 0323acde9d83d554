/* Internals of thread.c, for its test. */
#pragma once

/* The number of processors that the quotas of a cgroup and of its parents allow, rounded up. 0: no quota. `mount` is
 * where the hierarchy is mounted, `group` the path of the process in it ("/a/b"). Reads the files of cgroup versions 1
 * and 2. */
unsigned thread_quota(const char *mount, const char *group);
