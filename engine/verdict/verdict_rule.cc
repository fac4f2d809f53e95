#include "engine/verdict/verdict_rule.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/human_units.h"

namespace optfarm::verdict {
namespace {

// Used where the recipe sets no bound. UNITS: points of top-1; fraction.
constexpr double kLossThatMatters = 2.0;
constexpr double kAgreementThatMatters = 0.9;

// Speeds and sizes within 5 % are the same for somebody who decides.
constexpr double kSlower = 0.95;
constexpr double kFaster = 1.05;
constexpr double kSmaller = 0.95;

std::string Points(double change) {
  // -0.04 would print as "-0.0".
  if (std::fabs(change) < 0.05) return "same top-1";
  return absl::StrFormat("%+.1f points", change);
}

// " (1.9x to 2.2x)"; nothing where the ends print alike.
std::string IntervalWords(double low, double high) {
  const std::string from = HumanRatio(low), to = HumanRatio(high);
  return from == to ? "" : absl::StrCat(" (", from, " to ", to, ")");
}

// "1.80x faster (1.70x to 1.91x)". REQUIRES: facts.speedup.
std::string SpeedWords(const VerdictFacts& facts) {
  const double speedup = *facts.speedup;
  const bool has_interval = facts.speedup_low && facts.speedup_high;
  if (speedup >= kFaster) {
    return absl::StrCat(
        HumanRatio(speedup), " faster",
        has_interval ? IntervalWords(*facts.speedup_low, *facts.speedup_high)
                     : "");
  }
  if (speedup > kSlower) return "same speed";
  return absl::StrCat(HumanRatio(1 / speedup), " slower",
                      has_interval ? IntervalWords(1 / *facts.speedup_high,
                                                   1 / *facts.speedup_low)
                                   : "");
}

// "0.26x size, 1.80x faster, -0.3 points", as far as it is known.
std::string Summary(const VerdictFacts& facts) {
  std::vector<std::string> parts;
  if (facts.size_ratio) {
    parts.push_back(absl::StrCat(HumanRatio(*facts.size_ratio), " size"));
  }
  if (facts.speedup) parts.push_back(SpeedWords(facts));
  if (facts.top1_change) {
    parts.push_back(Points(*facts.top1_change));
  } else if (facts.agreement) {
    parts.push_back(
        absl::StrCat(HumanPercent(*facts.agreement * 100), " same answers"));
  }
  return absl::StrJoin(parts, ", ");
}

Verdict No(absl::string_view why) {
  return {v1::ShippingVerdict::NO, absl::StrCat("no: ", why)};
}

Verdict Unclear(absl::string_view why, const VerdictFacts& facts) {
  const std::string summary = Summary(facts);
  return {v1::ShippingVerdict::UNCLEAR,
          absl::StrCat("unclear: ", why, summary.empty() ? "" : "; ", summary)};
}

// What the answers lost where no bound says how much they may; "" when nothing
// that matters.
std::string UnboundedLoss(const VerdictFacts& facts) {
  if (facts.accuracy_bound_held) return "";
  if (facts.top1_change) {
    if (*facts.top1_change >= -kLossThatMatters) return "";
    return absl::StrFormat("loses %.1f points of top-1", -*facts.top1_change);
  }
  if (facts.agreement && *facts.agreement < kAgreementThatMatters) {
    return absl::StrCat("only ", HumanPercent(*facts.agreement * 100),
                        " of the answers are the same");
  }
  return "";
}

bool ClearlySlower(const VerdictFacts& facts) {
  if (!facts.speedup || *facts.speedup > kSlower) return false;
  return facts.speedup_high ? *facts.speedup_high < 1
                            : facts.speed_difference_is_clear;
}

bool NeitherSmallerNorFaster(const VerdictFacts& facts, double speedup) {
  return speedup < kFaster && facts.size_ratio && *facts.size_ratio > kSmaller;
}

// Whether the answer is the same wherever in its interval the speed-up lies.
bool NoiseDoesNotMatter(const VerdictFacts& facts) {
  if (!facts.speedup_low || !facts.speedup_high) return false;
  // Slower than float is a no, however small the file.
  if (*facts.speedup_low <= kSlower) return false;
  return NeitherSmallerNorFaster(facts, *facts.speedup_low) ==
         NeitherSmallerNorFaster(facts, *facts.speedup_high);
}

// A value and the bound that it misses, with as many digits as show that they
// differ.
struct Apart {
  std::string value;
  std::string bound;
};

Apart PrintApart(double value, double bound, int digits) {
  constexpr int kMostDigits = 9;
  Apart printed;
  do {
    printed = {absl::StrFormat("%.*f", digits, value),
               absl::StrFormat("%.*f", digits, bound)};
    ++digits;
  } while (printed.value == printed.bound && digits <= kMostDigits);
  return printed;
}

}  // namespace

std::string DescribeFailedGate(const FailedGate& gate) {
  if (!std::isfinite(gate.value)) {
    return absl::StrCat(gate.name, " could not be checked",
                        gate.message.empty() ? "" : ": ", gate.message);
  }
  if (gate.name == "max_accuracy_drop" ||
      gate.name == "max_top5_accuracy_drop") {
    const Apart points = PrintApart(gate.value, gate.bound, 1);
    return absl::StrCat("loses ", points.value, " points of ",
                        gate.name == "max_accuracy_drop" ? "top-1" : "top-5",
                        " (bound ", points.bound, ")");
  }
  if (gate.name == "min_top1_agreement") {
    const Apart percents = PrintApart(gate.value * 100, gate.bound * 100, 1);
    return absl::StrCat("only ", percents.value,
                        "% of the answers are the same (bound ", percents.bound,
                        "%)");
  }
  if (gate.name == "min_snr_db") {
    const Apart decibels = PrintApart(gate.value, gate.bound, 1);
    return absl::StrCat("signal to noise only ", decibels.value, " dB (bound ",
                        decibels.bound, ")");
  }
  if (gate.name == "max_size_ratio") {
    const Apart ratios = PrintApart(gate.value, gate.bound, 2);
    return absl::StrCat("file is ", ratios.value, "x the float size (bound ",
                        ratios.bound, "x)");
  }
  if (gate.name == "min_speedup") {
    const Apart ratios = PrintApart(gate.value, gate.bound, 2);
    return absl::StrCat("only ", ratios.value, "x the speed of float (bound ",
                        ratios.bound, "x)");
  }
  return gate.message.empty()
             ? absl::StrFormat("%s is %g (bound %g)", gate.name, gate.value,
                               gate.bound)
             : gate.message;
}

Verdict DecideVerdict(const VerdictFacts& facts) {
  if (facts.baseline) return {v1::ShippingVerdict::BASELINE, "baseline"};
  if (!facts.failed_gates.empty()) {
    return No(absl::StrJoin(facts.failed_gates, "; ",
                            [](std::string* out, const FailedGate& gate) {
                              out->append(DescribeFailedGate(gate));
                            }));
  }
  if (const std::string loss = UnboundedLoss(facts); !loss.empty()) {
    return No(loss);
  }
  if (!facts.distrust.empty()) {
    return Unclear(
        absl::StrCat("not to be trusted (",
                     absl::StripSuffix(facts.distrust.front(), "."), ")"),
        facts);
  }
  if (ClearlySlower(facts)) {
    return No(absl::StrCat(SpeedWords(facts), " than float here"));
  }
  if (!facts.noise_reasons.empty() && !NoiseDoesNotMatter(facts)) {
    const absl::string_view reason =
        absl::StripSuffix(facts.noise_reasons.front(), ".");
    return Unclear(absl::StrCat("noisy (", reason, ")"), facts);
  }
  if (facts.speedup && NeitherSmallerNorFaster(facts, *facts.speedup)) {
    return No("neither smaller nor faster than float");
  }
  if (!facts.speedup) return Unclear("speed not measured", facts);
  if (!facts.top1_change && !facts.agreement) {
    return Unclear("answers not compared", facts);
  }
  return {v1::ShippingVerdict::YES, absl::StrCat("yes: ", Summary(facts))};
}

}  // namespace optfarm::verdict
