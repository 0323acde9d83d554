#include "script/script_busy.h"

#include "server/request.h"

void script_busy_kill(struct request *request, bool function)
{
    (void)function;
    reply_error(request, "NOTBUSY No scripts in execution right now.");
}
