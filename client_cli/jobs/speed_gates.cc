#include "client_cli/jobs/speed_gates.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace optfarm::client_cli {
namespace {

const v1::Measurement* FindOriginal(
    const std::vector<v1::Measurement>& measurements,
    const v1::Measurement& result) {
  for (const v1::Measurement& other : measurements) {
    if (other.variant() == "float" && other.threads() == result.threads() &&
        other.device() == result.device()) {
      return &other;
    }
  }
  return nullptr;
}

}  // namespace

std::vector<v1::GateResult> CheckSpeedGates(
    const v1::Bounds& bounds,
    const std::vector<v1::Measurement>& measurements) {
  std::vector<v1::GateResult> gates;
  if (!bounds.has_min_speedup()) return gates;
  for (const v1::Measurement& result : measurements) {
    if (result.variant() == "float") continue;
    const v1::Measurement* original = FindOriginal(measurements, result);
    if (original == nullptr || result.median_us() <= 0) continue;
    v1::GateResult& gate = gates.emplace_back();
    gate.set_name(absl::StrCat("min_speedup[", result.device(), ",",
                               result.threads(), "]"));
    gate.set_value(original->median_us() / result.median_us());
    gate.set_bound(bounds.min_speedup());
    gate.set_passed(gate.value() >= gate.bound());
    gate.set_message(absl::StrFormat(
        "%s runs at %.2f times the speed of float with %d threads",
        result.variant(), gate.value(), result.threads()));
  }
  if (gates.empty()) {
    v1::GateResult& gate = gates.emplace_back();
    gate.set_name("min_speedup");
    gate.set_value(std::numeric_limits<double>::quiet_NaN());
    gate.set_bound(bounds.min_speedup());
    gate.set_message("nothing was measured");
  }
  return gates;
}

}  // namespace optfarm::client_cli
