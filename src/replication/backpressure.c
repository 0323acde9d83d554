#include "replication/backpressure.h"

int64_t backpressure_look(struct backpressure *backpressure, int64_t limit, uint64_t lag, uint64_t now_us,
                          uint64_t timeout_us)
{
    if (limit == 0 || lag <= (uint64_t)limit / 2) {
        *backpressure = (struct backpressure){0};
        return limit;
    }
    if (backpressure->lags_since_us == 0)
        backpressure->lags_since_us = now_us;
    else if (now_us - backpressure->lags_since_us > timeout_us)
        backpressure->is_excused = true;
    return backpressure->is_excused ? 0 : limit;
}

bool pacing_look(struct pacing *pacing, uint64_t limit, uint64_t lag, uint64_t now_us)
{
    if (limit == 0 || lag <= limit / 2) {
        *pacing = (struct pacing){0};
        return false;
    }
    if (pacing->is_excused || (pacing->since_us == 0 && lag <= limit))
        return false;
    if (pacing->since_us == 0)
        pacing->since_us = now_us;
    pacing->is_excused = now_us - pacing->since_us > PACING_MOST_US;
    pacing->holds = !pacing->holds && !pacing->is_excused;
    return pacing->holds;
}
