#include "CpuFixture.h"
