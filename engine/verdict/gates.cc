#include "engine/verdict/gates.h"

#include <limits>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace optfarm::verdict {
namespace {

struct Pair {
  const v1::Measurement* original = nullptr;
  const v1::Measurement* optimized = nullptr;
};

v1::GateResult NothingMeasured(double bound) {
  v1::GateResult gate;
  gate.set_name("min_speedup");
  gate.set_value(std::numeric_limits<double>::quiet_NaN());
  gate.set_bound(bound);
  gate.set_message("nothing was measured");
  return gate;
}

}  // namespace

std::vector<v1::GateResult> SpeedGates(
    const v1::Recipe& recipe, absl::string_view device,
    absl::Span<const v1::Measurement> measurements) {
  if (!recipe.bounds().has_min_speedup()) return {};
  const double bound = recipe.bounds().min_speedup();
  if (measurements.empty()) return {NothingMeasured(bound)};
  std::map<int, Pair> by_threads;
  for (const v1::Measurement& measurement : measurements) {
    Pair& pair = by_threads[measurement.threads()];
    if (measurement.variant() == "float") pair.original = &measurement;
    if (measurement.variant() == recipe.name()) pair.optimized = &measurement;
  }
  std::vector<v1::GateResult> gates;
  for (const auto& [threads, pair] : by_threads) {
    v1::GateResult& gate = gates.emplace_back();
    gate.set_name(absl::StrCat("min_speedup[", device, ",", threads, "]"));
    gate.set_bound(bound);
    if (pair.original == nullptr || pair.optimized == nullptr ||
        !(pair.optimized->median_us() > 0)) {
      gate.set_message(
          "float and optimized graph were not both measured; measure again");
      continue;
    }
    gate.set_value(pair.original->median_us() / pair.optimized->median_us());
    gate.set_passed(gate.value() >= bound);
    gate.set_message(absl::StrFormat(
        "%s runs %.2f times as fast as float on %s with %d threads, asked "
        "were %.2f%s",
        recipe.name(), gate.value(), device, threads, bound,
        pair.original->noisy() || pair.optimized->noisy()
            ? " (a measurement is noisy: measure again on a quiet device)"
            : ""));
  }
  return gates;
}

std::optional<v1::Failure> GateFailure(absl::Span<const v1::GateResult> gates) {
  std::vector<std::string> failed;
  for (const v1::GateResult& gate : gates) {
    if (gate.passed()) continue;
    failed.push_back(absl::StrCat(gate.name(), ": ", gate.message()));
  }
  if (failed.empty()) return std::nullopt;
  v1::Failure failure;
  failure.set_kind(v1::Failure::USER);
  failure.set_code("GATE_FAILED");
  failure.set_message(absl::StrCat("the result misses ", failed.size(), " of ",
                                   gates.size(),
                                   " bounds: ", absl::StrJoin(failed, "; ")));
  return failure;
}

}  // namespace optfarm::verdict
