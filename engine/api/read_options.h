// Reading the option structs of callers that were built against other versions
// of c_api.h.

#ifndef OPTFARM_ENGINE_API_READ_OPTIONS_H_
#define OPTFARM_ENGINE_API_READ_OPTIONS_H_

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace optfarm::api {

// The caller's struct, which may be shorter or longer than ours, over the
// defaults.
template <typename Options>
Options ReadOptions(const Options* given, void (*init)(Options*)) {
  Options options;
  init(&options);
  if (given == nullptr) return options;
  const size_t size = std::min(given->struct_size, sizeof(options));
  if (size > sizeof(size_t)) std::memcpy(&options, given, size);
  options.struct_size = sizeof(options);
  return options;
}

}  // namespace optfarm::api

#endif  // OPTFARM_ENGINE_API_READ_OPTIONS_H_
