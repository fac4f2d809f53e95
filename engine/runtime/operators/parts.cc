#include "engine/runtime/operators/parts.h"

#include <unistd.h>

#include <algorithm>

namespace optfarm::runtime {

int64_t BlockBytes() {
#if defined(_SC_LEVEL2_CACHE_SIZE)
  static const int64_t size = sysconf(_SC_LEVEL2_CACHE_SIZE);
#else
  static const int64_t size = 0;
#endif
  return std::max<int64_t>(128 * 1024, size / 2);
}

}  // namespace optfarm::runtime
