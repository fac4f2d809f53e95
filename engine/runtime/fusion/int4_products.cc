#include "engine/runtime/fusion/int4_products.h"

#include <atomic>
#include <cstdlib>

#include "absl/strings/numbers.h"

namespace optfarm::runtime {
namespace {

// What an Int4ProductsLimit says; below 0 where there is none.
std::atomic<int64_t>& Int4Limit() {
  static std::atomic<int64_t> limit{-1};
  return limit;
}

int64_t Int4FromEnvironment() {
  constexpr int64_t kDefault = int64_t{8} << 20;
  const char* text = std::getenv("OPTFARM_INT4_FROM");
  int64_t bytes = 0;
  const bool is_given = text != nullptr && absl::SimpleAtoi(text, &bytes);
  return is_given && bytes >= 0 ? bytes : kDefault;
}

}  // namespace

int64_t Int4ProductsFrom() {
  static const int64_t from = Int4FromEnvironment();
  const int64_t limit = Int4Limit().load();
  return limit >= 0 ? limit : from;
}

Int4ProductsLimit::Int4ProductsLimit(int64_t from) { Int4Limit().store(from); }

Int4ProductsLimit::~Int4ProductsLimit() { Int4Limit().store(-1); }

}  // namespace optfarm::runtime
