#include "store/lru_lfu.h"

#include "base/compiler.h"

enum { MINUTE_MS = 60000, MINUTE_MASK = 0xFFFF };

static uint32_t minute_of(int64_t now_ms)
{
    return (uint32_t)(now_ms / MINUTE_MS) & MINUTE_MASK;
}

uint32_t lru_lfu_fresh(int64_t now_ms)
{
    return minute_of(now_ms) << 8 | LFU_FRESH_COUNT;
}

uint32_t lru_lfu_count(uint32_t clock, int64_t now_ms, struct lru_lfu_rule rule)
{
    uint32_t count = clock & 0xFF, passed = (minute_of(now_ms) - (clock >> 8)) & MINUTE_MASK;

    if (rule.decay_minutes == 0)
        return count;
    return count - MIN(count, passed / rule.decay_minutes);
}

uint32_t lru_lfu_add(uint32_t clock, int64_t now_ms, struct lru_lfu_rule rule, uint64_t chance)
{
    uint32_t count = lru_lfu_count(clock, now_ms, rule);
    uint64_t above = count > LFU_FRESH_COUNT ? count - LFU_FRESH_COUNT : 0;

    if (count < LFU_MOST_COUNT && chance % (above * rule.log_factor + 1) == 0)
        count++;
    return minute_of(now_ms) << 8 | count;
}
