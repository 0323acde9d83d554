#include "metrics/page.h"

/* The compiler runs where the Makefile is. */
__asm__(".section .rodata\n"
        ".balign 16\n"
        ".global metrics_page_begin\n"
        "metrics_page_begin:\n"
        ".incbin \"src/metrics/page.html\"\n"
        ".global metrics_page_end\n"
        "metrics_page_end:\n"
        ".byte 0\n"
        ".previous\n");

extern const char metrics_page_begin[], metrics_page_end[];

struct slice page_html(void)
{
    return slice_make(metrics_page_begin, (size_t)(metrics_page_end - metrics_page_begin));
}
