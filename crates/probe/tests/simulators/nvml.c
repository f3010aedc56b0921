/* Stands in for NVIDIA's management library (libnvidia-ml.so.1) in tests: DEVICES accelerators, each of which counts 7 J
 * times its number a reading, or with NO_ENERGY says 71.5 W; with NO_DRIVER it cannot be set up. Names, types and numbers
 * are those of nvml.h. */
#include <stddef.h>

#define SUCCESS 0
#define INVALID_ARGUMENT 2
#define NOT_SUPPORTED 3
#define DRIVER_NOT_LOADED 9

struct device {
    unsigned long long millijoules;
};

static struct device devices[8];
static int users;

int nvmlInit_v2(void) {
#ifdef NO_DRIVER
    return DRIVER_NOT_LOADED;
#else
    users++;
    return SUCCESS;
#endif
}

int nvmlShutdown(void) {
    users--;
    return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned int *count) {
    *count = DEVICES;
    return SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, struct device **device) {
    if (users < 1 || index >= DEVICES)
        return INVALID_ARGUMENT;
    *device = &devices[index];
    return SUCCESS;
}

int nvmlDeviceGetTotalEnergyConsumption(struct device *device, unsigned long long *millijoules) {
#ifdef NO_ENERGY
    return NOT_SUPPORTED;
#else
    if (users < 1 || device == NULL)
        return INVALID_ARGUMENT;
    device->millijoules += 7000 * (unsigned long long)(device - devices + 1);
    *millijoules = device->millijoules;
    return SUCCESS;
#endif
}

int nvmlDeviceGetPowerUsage(struct device *device, unsigned int *milliwatts) {
    if (users < 1 || device == NULL)
        return INVALID_ARGUMENT;
    *milliwatts = 71500;
    return SUCCESS;
}

const char *nvmlErrorString(int result) {
    return result == DRIVER_NOT_LOADED ? "Driver Not Loaded" : "Some Error";
}
