#include "server/services/regression_rule.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/services/student.h"
#include "storage/metadata_store.h"

namespace optfarm::server {
namespace {

using ::optfarm::storage::PointNumbers;

constexpr int kMinPoints = 5;
constexpr int kWindow = 20;
constexpr int kLargestWindow = 100;
constexpr double kRatio = 1.1;
constexpr double kDeviations = 5;
// Of the rule CHANGE: how often a series that did not change may be reported,
// what is too little to matter, and which share of the past values is taken
// for disturbed, on each side, where there are enough of them.
constexpr double kFalseAlarms = 0.01;
constexpr double kLeastFalseAlarms = 1e-5;
constexpr double kMostFalseAlarms = 0.4;
constexpr double kLeastChange = 1.03;
constexpr size_t kDisturbed = 5;
constexpr size_t kLeastCut = 7;
// Variance of a median over that of a mean of as many values.
constexpr double kMedianVariance = 1.5708;
// A normal distribution's standard deviation over its MAD.
constexpr double kDeviationOverMad = 1.4826;

// Which of `count` sorted values the quantile is not below.
size_t Below(double fraction, size_t count) {
  return static_cast<size_t>(fraction * static_cast<double>(count - 1));
}

// Between two values in proportion. REQUIRES: not empty.
double Quantile(std::vector<double> values, double fraction) {
  const double position = fraction * static_cast<double>(values.size() - 1);
  const size_t below = Below(fraction, values.size());
  const auto lower = values.begin() + static_cast<std::ptrdiff_t>(below);
  std::nth_element(values.begin(), lower, values.end());
  const auto upper = std::min_element(lower + 1, values.end());
  const double above = upper == values.end() ? *lower : *upper;
  return *lower + (above - *lower) * (position - static_cast<double>(below));
}

double Mad(std::vector<double> values, double median) {
  for (double& value : values) value = std::abs(value - median);
  return Quantile(std::move(values), 0.5);
}

// The value that the next one is below with probability 1 - `false_alarms`, if
// nothing changed: Student's prediction of logarithms, around their median,
// with their winsorized deviation, which a few disturbed values do not widen.
// REQUIRES: at least two values; all are above 0.
double PredictedMost(std::vector<double> past, double median,
                     double false_alarms) {
  for (double& value : past) value = std::log(value);
  std::sort(past.begin(), past.end());
  const size_t n = past.size();
  const size_t cut = n < kLeastCut ? 0 : n / kDisturbed;
  const size_t kept = n - 2 * cut;
  double mean = 0, squares = 0;
  const auto at = [&](size_t i) {
    return past[std::clamp(i, cut, n - 1 - cut)];
  };
  for (size_t i = 0; i < n; ++i) mean += at(i) / static_cast<double>(n);
  for (size_t i = 0; i < n; ++i) squares += (at(i) - mean) * (at(i) - mean);
  // Of all values, had none been cut.
  const double deviation = std::sqrt(squares * static_cast<double>(n - 1)) /
                           static_cast<double>(kept - 1);
  const double reach =
      StudentQuantile(1 - false_alarms, static_cast<int>(kept) - 1) *
      deviation * std::sqrt(1 + kMedianVariance / static_cast<double>(n));
  return median * std::exp(reach);
}

double AllowedChange(const std::vector<double>& past, double median,
                     double false_alarms) {
  const double least = median * kLeastChange;
  const bool has_logarithms = std::all_of(
      past.begin(), past.end(), [](double value) { return value > 0; });
  if (!has_logarithms || past.size() < 2) return least;
  return std::max(least, PredictedMost(past, median, false_alarms));
}

double Allowed(const v1::RegressionRule& rule, const std::vector<double>& past,
               double median, const std::vector<double>& past_p90s) {
  switch (rule.kind()) {
    case v1::RegressionRule::RATIO:
      return rule.limit() * median;
    case v1::RegressionRule::CHANGE:
      return AllowedChange(past, median, rule.limit());
    case v1::RegressionRule::DEVIATIONS:
      return median + rule.limit() * kDeviationOverMad * Mad(past, median);
    default: {
      const auto [least, most] =
          std::minmax_element(past_p90s.begin(), past_p90s.end());
      return Quantile(past_p90s, 0.9) + (*most - *least) / 10;
    }
  }
}

double DefaultLimit(v1::RegressionRule::Kind kind) {
  switch (kind) {
    case v1::RegressionRule::CHANGE:
      return kFalseAlarms;
    case v1::RegressionRule::DEVIATIONS:
      return kDeviations;
    default:
      return kRatio;
  }
}

std::string Amount(double value, v1::Metric metric) {
  if (metric == v1::PEAK_MEMORY_BYTES || metric == v1::FILE_SIZE_BYTES) {
    return absl::StrFormat("%.3g MB", value / 1e6);
  }
  return value < 1000 ? absl::StrFormat("%.3g us", value)
                      : absl::StrFormat("%.3g ms", value / 1000);
}

// One past value has no spread.
int LeastPoints(const v1::RegressionRule& rule) {
  const bool needs_spread = rule.kind() == v1::RegressionRule::CHANGE;
  return std::max(rule.min_points(), needs_spread ? 3 : 2);
}

absl::string_view NameOf(v1::Metric metric) {
  switch (metric) {
    case v1::P90_US:
      return "p90";
    case v1::PEAK_MEMORY_BYTES:
      return "peak memory";
    case v1::FILE_SIZE_BYTES:
      return "file size";
    default:
      return "median";
  }
}

}  // namespace

absl::StatusOr<v1::RegressionRule> CompleteRule(
    const v1::RegressionRule& rule) {
  const auto wrong = [](absl::string_view field, double value,
                        absl::string_view allowed) {
    return absl::InvalidArgumentError(
        absl::StrCat("rule.", field, " is ", value, "; give ", allowed));
  };
  v1::RegressionRule complete = rule;
  if (rule.kind() == v1::RegressionRule::KIND_UNSPECIFIED) {
    complete.set_kind(v1::RegressionRule::CHANGE);
  } else if (!v1::RegressionRule::Kind_IsValid(rule.kind())) {
    return wrong("kind", rule.kind(), "CHANGE, PAST_P90S, RATIO or DEVIATIONS");
  }
  if (!std::isfinite(rule.limit()) || rule.limit() < 0) {
    return wrong("limit", rule.limit(), "0 or more");
  }
  if (rule.limit() == 0) complete.set_limit(DefaultLimit(complete.kind()));
  if (complete.kind() == v1::RegressionRule::CHANGE &&
      (complete.limit() < kLeastFalseAlarms ||
       complete.limit() > kMostFalseAlarms)) {
    return wrong("limit", rule.limit(),
                 "the share of false alarms that the rule CHANGE may have, "
                 "0.00001 to 0.4");
  }
  if (rule.min_points() == 0) complete.set_min_points(kMinPoints);
  if (complete.min_points() < 2 || complete.min_points() > kLargestWindow) {
    return wrong("min_points", rule.min_points(), "0, or 2 to 100");
  }
  if (rule.window() == 0) {
    complete.set_window(std::max(kWindow, complete.min_points()));
  }
  if (complete.window() < complete.min_points() ||
      complete.window() > kLargestWindow) {
    return wrong("window", rule.window(), "0, or min_points to 100");
  }
  if (rule.metric() == v1::METRIC_UNSPECIFIED) {
    complete.set_metric(v1::MEDIAN_US);
  } else if (!v1::Metric_IsValid(rule.metric())) {
    return wrong("metric", rule.metric(), "a known one");
  }
  return complete;
}

Judgement Judge(const v1::RegressionRule& rule,
                absl::Span<const PointNumbers> points) {
  Judgement judgement;
  std::vector<double> past;
  std::vector<double> past_p90s;
  past.reserve(points.size());
  past_p90s.reserve(points.size());
  for (const PointNumbers& point : points) {
    if (rule.skip_noisy() && point.noisy) continue;
    const double value = ValueOf(point, rule.metric());
    if (judgement.point == nullptr) {
      judgement.point = &point;
      judgement.newest = value;
      continue;
    }
    if (static_cast<int>(past.size()) + 1 >= rule.window()) break;
    past.push_back(value);
    past_p90s.push_back(rule.metric() == v1::MEDIAN_US ? point.p90_us : value);
  }
  judgement.past_points = static_cast<int>(past.size());
  judgement.enough_points = judgement.point != nullptr &&
                            judgement.past_points + 1 >= LeastPoints(rule);
  if (!judgement.enough_points) return judgement;
  judgement.past_median = Quantile(past, 0.5);
  judgement.allowed = Allowed(rule, past, judgement.past_median, past_p90s);
  judgement.regressed = judgement.newest > judgement.allowed;
  return judgement;
}

bool IsFine(const v1::RegressionRule& rule,
            absl::Span<const PointNumbers> points) {
  if (static_cast<int>(points.size()) < LeastPoints(rule)) return false;
  const auto most_past = static_cast<size_t>(rule.window() - 1);
  const bool past_p90s = rule.kind() == v1::RegressionRule::PAST_P90S;
  const size_t needed = most_past - Below(past_p90s ? 0.9 : 0.5, most_past);
  if (points.size() <= needed) return false;
  const double scale =
      rule.kind() == v1::RegressionRule::RATIO ? rule.limit() : 1;
  std::optional<double> newest;
  size_t past = 0;
  size_t no_better = 0;
  for (const PointNumbers& point : points) {
    if (rule.skip_noisy() && point.noisy) continue;
    double value = ValueOf(point, rule.metric());
    if (!newest) {
      newest = value;
      continue;
    }
    if (past == most_past) break;
    if (past_p90s && rule.metric() == v1::MEDIAN_US) value = point.p90_us;
    ++past;
    if (scale * value >= *newest) ++no_better;
  }
  // What is allowed is no less than a quantile of the past values, and that no
  // less than the newest when so many of them are.
  return static_cast<int>(past) + 1 >= LeastPoints(rule) && no_better >= needed;
}

bool IsEnough(const v1::RegressionRule& rule,
              absl::Span<const PointNumbers> points) {
  if (IsFine(rule, points)) return true;
  const auto looked_at = [&](const PointNumbers& point) {
    return !rule.skip_noisy() || !point.noisy;
  };
  return std::count_if(points.begin(), points.end(), looked_at) >=
         rule.window();
}

std::string Explain(const v1::RegressionRule& rule,
                    const Judgement& judgement) {
  const v1::Metric metric = rule.metric();
  std::string rise;
  if (judgement.past_median > 0) {
    const double percent = 100 * (judgement.newest / judgement.past_median - 1);
    rise = absl::StrFormat(" is %.3g %% %s", std::abs(percent),
                           percent < 0 ? "below" : "above");
  } else {
    rise = " is above";
  }
  return absl::StrCat("the ", NameOf(metric), " of ",
                      Amount(judgement.newest, metric), rise, " the ",
                      Amount(judgement.past_median, metric), " of ",
                      judgement.past_points, " points before it; up to ",
                      Amount(judgement.allowed, metric), " was allowed");
}

}  // namespace optfarm::server
