/* The status page: page.html as it is, a part of the program. */
#pragma once

#include "base/slice.h"

struct slice page_html(void);
