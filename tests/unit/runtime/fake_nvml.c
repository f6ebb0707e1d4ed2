/* A stand-in for libnvidia-ml.so.1 with the signatures of nvml.h: two cards, the second one another job's.
 * FAKE_NVML_ENERGY set: the energy counters go up by 1000 J with each question, else the cards have none.
 * FAKE_NVML_DENIED, a number: that card is counted and its handle refused, as in a control group without its device. */
#include <stdlib.h>
#include <string.h>

typedef int nvmlReturn_t;
typedef struct card *nvmlDevice_t;
typedef struct { unsigned int gpu, memory; } nvmlUtilization_t;
typedef struct { unsigned long long total, free, used; } nvmlMemory_t;
enum { NVML_SUCCESS = 0, NVML_ERROR_NOT_SUPPORTED = 3, NVML_ERROR_NO_PERMISSION = 4, NVML_ERROR_NOT_FOUND = 6 };

struct card { const char *uuid; unsigned int busy, milliwatts; unsigned long long used, millijoules; };
static struct card cards[2] = {
    {"GPU-5f1e0c2a-0000-0000-0000-000000000001", 37, 250500, 6ull << 30, 1000000},
    {"GPU-5f1e0c2a-0000-0000-0000-000000000002", 100, 700000, 70ull << 30, 5000000},
};

nvmlReturn_t nvmlInitWithFlags(unsigned int flags) { return flags ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS; }
nvmlReturn_t nvmlShutdown(void) { return NVML_SUCCESS; }
const char *nvmlErrorString(nvmlReturn_t code) { return code == NVML_ERROR_NOT_SUPPORTED ? "Not Supported" : "?"; }
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count) { *count = 2; return NVML_SUCCESS; }

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    const char *denied = getenv("FAKE_NVML_DENIED");
    if (denied && (unsigned int)atoi(denied) == index)
        return NVML_ERROR_NO_PERMISSION;
    *device = &cards[index];
    return index < 2 ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    for (int n = 0; n < 2; n++)
        if (!strcmp(uuid, cards[n].uuid)) {
            *device = &cards[n];
            return NVML_SUCCESS;
        }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    strncpy(name, "Example H1 80GB", length);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    strncpy(uuid, device->uuid, length);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates)
{
    rates->gpu = device->busy;
    rates->memory = 5;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    memory->total = 80ull << 30;
    memory->used = device->used;
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *milliwatts)
{
    *milliwatts = device->milliwatts;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *millijoules)
{
    if (!getenv("FAKE_NVML_ENERGY"))
        return NVML_ERROR_NOT_SUPPORTED;
    *millijoules = device->millijoules += 1000000;
    return NVML_SUCCESS;
}
