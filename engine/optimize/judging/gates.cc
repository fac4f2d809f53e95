#include "engine/optimize/judging/gates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace optfarm::optimize {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

v1::GateResult Gate(absl::string_view name, double value, double bound,
                    bool at_most, absl::string_view what,
                    absl::string_view advice) {
  v1::GateResult gate;
  gate.set_name(std::string(name));
  gate.set_value(value);
  gate.set_bound(bound);
  // NaN fails both comparisons.
  gate.set_passed(at_most ? value <= bound : value >= bound);
  std::string message =
      absl::StrFormat("%s is %.4g; %s %.4g is allowed.", std::string(what),
                      value, at_most ? "at most" : "at least", bound);
  if (!gate.passed()) {
    message = std::isnan(value) ? std::string(advice)
                                : absl::StrCat(message, " ", advice);
  }
  gate.set_message(message);
  return gate;
}

constexpr char kLossAdvice[] =
    "Give more calibration data, keep more layers in float (keep_float), or "
    "use weights8.";

// What helps against a loss that was measured on so many samples. Where one of
// them is more than the bound, the loss says nothing yet.
std::string AgainstLoss(int64_t samples, double bound) {
  const double one = 100.0 / static_cast<double>(std::max<int64_t>(samples, 1));
  if (one <= bound) return kLossAdvice;
  return absl::StrFormat(
      "One of the %d samples it was measured on is %.4g already; give more "
      "labelled samples.",
      samples, one);
}

void CheckAccuracy(const v1::Bounds& bounds, const GateFacts& facts,
                   std::vector<v1::GateResult>* gates) {
  const bool has_labels =
      facts.float_accuracy.has_value() && facts.optimized_accuracy.has_value();
  if (!has_labels && bounds.labels_decide()) return;
  const v1::Accuracy before = facts.float_accuracy.value_or(v1::Accuracy());
  const v1::Accuracy after = facts.optimized_accuracy.value_or(v1::Accuracy());
  const auto check = [&](absl::string_view name, double of_float,
                         double of_result, double bound,
                         absl::string_view what) {
    gates->push_back(
        Gate(name, has_labels ? of_float - of_result : kNaN, bound,
             /*at_most=*/true, what,
             has_labels ? AgainstLoss(after.samples(), bound)
                        : "The bound needs labels and there are none; give "
                          "--labels."));
  };
  if (bounds.has_max_accuracy_drop()) {
    check("max_accuracy_drop", before.top1(), after.top1(),
          bounds.max_accuracy_drop(), "The loss of top-1 in points");
  }
  if (bounds.has_max_top5_accuracy_drop()) {
    check("max_top5_accuracy_drop", before.top5(), after.top5(),
          bounds.max_top5_accuracy_drop(), "The loss of top-5 in points");
  }
}

bool HasClasses(const v1::TensorComparison& output) {
  return output.top1_agreement() >= 0;
}

// Least value over the outputs; NaN when none has one.
template <typename Value>
double Least(const GateFacts& facts, Value value) {
  double least = kNaN;
  for (const v1::TensorComparison& output : facts.outputs) {
    const double v = value(output);
    if (!std::isnan(v)) least = std::isnan(least) ? v : std::min(least, v);
  }
  return least;
}

double LeastAgreement(const GateFacts& facts) {
  return Least(facts, [](const v1::TensorComparison& output) {
    return output.top1_agreement() < 0 ? kNaN : output.top1_agreement();
  });
}

double LeastSnr(const GateFacts& facts, bool without_classes = false) {
  return Least(facts, [&](const v1::TensorComparison& output) {
    if (without_classes && HasClasses(output)) return kNaN;
    return output.samples() > 0 ? output.snr_db() : kNaN;
  });
}

void CheckAgreement(const v1::Bounds& bounds, const GateFacts& facts,
                    std::vector<v1::GateResult>* gates) {
  const bool has_labels = facts.float_accuracy.has_value();
  if (!bounds.has_min_top1_agreement() ||
      (has_labels && bounds.labels_decide())) {
    return;
  }
  const double agreement = LeastAgreement(facts);
  if (std::isnan(agreement) && bounds.classes_decide()) return;
  gates->push_back(Gate(
      "min_top1_agreement", agreement, bounds.min_top1_agreement(),
      /*at_most=*/false, "The share of samples whose best class stays the same",
      std::isnan(agreement)
          ? "No output has classes to compare; use min_snr_db for this "
            "model."
          : kLossAdvice));
}

void CheckSnr(const v1::Bounds& bounds, const GateFacts& facts,
              std::vector<v1::GateResult>* gates) {
  if (!bounds.has_min_snr_db()) return;
  const double snr = LeastSnr(facts, bounds.classes_decide());
  const bool only_classes =
      !facts.outputs.empty() &&
      std::all_of(facts.outputs.begin(), facts.outputs.end(), HasClasses);
  if (bounds.classes_decide() && only_classes) return;
  gates->push_back(
      Gate("min_snr_db", snr, bounds.min_snr_db(), /*at_most=*/false,
           "The signal-to-noise ratio of the worst output in dB",
           std::isnan(snr) ? "Nothing was compared; give calibration data."
                           : kLossAdvice));
}

}  // namespace

std::vector<v1::GateResult> CheckGates(const v1::Bounds& bounds,
                                       const GateFacts& facts) {
  std::vector<v1::GateResult> gates;
  CheckAccuracy(bounds, facts, &gates);
  CheckAgreement(bounds, facts, &gates);
  CheckSnr(bounds, facts, &gates);
  if (bounds.has_max_size_ratio()) {
    const double ratio = facts.bytes_before > 0
                             ? static_cast<double>(facts.bytes_after) /
                                   static_cast<double>(facts.bytes_before)
                             : kNaN;
    gates.push_back(Gate("max_size_ratio", ratio, bounds.max_size_ratio(),
                         /*at_most=*/true,
                         "The size of the optimized file over the original's",
                         "Quantize more of the weights."));
  }
  return gates;
}

v1::Bounds BoundsWithoutLabels(const v1::Bounds& bounds) {
  v1::Bounds guide = bounds;
  guide.clear_max_accuracy_drop();
  guide.clear_max_top5_accuracy_drop();
  guide.clear_labels_decide();
  if (bounds.has_max_accuracy_drop() && !bounds.has_min_top1_agreement()) {
    guide.set_min_top1_agreement(
        std::clamp(1 - bounds.max_accuracy_drop() / 100, 0.0, 1.0));
  }
  return guide;
}

v1::Bounds WithAims(const v1::Bounds& bounds, const v1::KeepFloat& aims) {
  v1::Bounds wished = bounds;
  if (aims.has_aim_agreement()) {
    wished.set_min_top1_agreement(
        std::max(bounds.min_top1_agreement(), aims.aim_agreement()));
  }
  if (aims.has_aim_snr_db()) {
    wished.set_min_snr_db(bounds.has_min_snr_db()
                              ? std::max(bounds.min_snr_db(), aims.aim_snr_db())
                              : aims.aim_snr_db());
  }
  return wished;
}

bool AllPassed(absl::Span<const v1::GateResult> gates) {
  return std::all_of(gates.begin(), gates.end(),
                     [](const v1::GateResult& g) { return g.passed(); });
}

bool MayBeMended(absl::Span<const v1::GateResult> gates) {
  return std::any_of(gates.begin(), gates.end(), [](const v1::GateResult& g) {
    return !g.passed() && !std::isnan(g.value());
  });
}

double Badness(absl::Span<const v1::GateResult> gates, const GateFacts& facts) {
  const double snr = LeastSnr(facts);
  double badness = std::isnan(snr) ? 0 : -std::clamp(snr, -99.0, 99.0) * 1e-6;
  for (const v1::GateResult& gate : gates) {
    if (gate.passed() || std::isnan(gate.value())) continue;
    const bool is_ratio =
        gate.name() == "min_top1_agreement" || gate.name() == "max_size_ratio";
    const double distance =
        std::min(std::abs(gate.value() - gate.bound()), 1e6);
    badness += distance * (is_ratio ? 100 : 1);
  }
  return badness;
}

}  // namespace optfarm::optimize
