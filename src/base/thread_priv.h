/* For thread.c and its test. */
#pragma once

/* Processors that the quotas of a cgroup and of all above it allow, rounded up; 0: no quota. `mount` is where the
 * hierarchy is mounted, `group` the path of the process in it ("/a/b"). Understands both versions' files. */
unsigned thread_quota(const char *mount, const char *group);
