// A log of observed ranges. What is read from it survives being written.

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"
#include "engine/transforms/freezing/range_log.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace optfarm::transforms;
  const RangeLog log = ParseRangeLog(
      absl::string_view(reinterpret_cast<const char*>(data), size));
  if (ParseRangeLog(PrintRangeLog(log)).size() != log.size()) std::abort();
  return 0;
}
