// When the newest point of a series is worse than those before it. Pure
// functions of the points.

#ifndef OPTFARM_SERVER_SERVICES_REGRESSION_RULE_H_
#define OPTFARM_SERVER_SERVICES_REGRESSION_RULE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "optfarm/v1/results.pb.h"
#include "storage/records.h"

namespace optfarm::server {

// The rule with its defaults filled in.
// ERRORS: InvalidArgument naming the field.
absl::StatusOr<v1::RegressionRule> CompleteRule(const v1::RegressionRule& rule);

struct Judgement {
  bool enough_points = false;
  bool regressed = false;
  // Meaningful with enough points. UNITS: the metric's.
  double newest = 0;
  double allowed = 0;
  double past_median = 0;
  int past_points = 0;
  // The point that was judged.
  const storage::PointNumbers* point = nullptr;
};

// Judges a series, newest point first, by a complete rule.
Judgement Judge(const v1::RegressionRule& rule,
                absl::Span<const storage::PointNumbers> points);

// Whether the newest point is fine by a complete rule, whatever points may come
// after these: most of a series need not be read to its end.
bool IsFine(const v1::RegressionRule& rule,
            absl::Span<const storage::PointNumbers> points);

// Whether no older points are needed to judge the newest: it is fine, or the
// window is full.
bool IsEnough(const v1::RegressionRule& rule,
              absl::Span<const storage::PointNumbers> points);

// "The median of 12.3 ms is 23 % above the 10 ms of 19 points before it; ..."
std::string Explain(const v1::RegressionRule& rule, const Judgement& judgement);

}  // namespace optfarm::server

#endif  // OPTFARM_SERVER_SERVICES_REGRESSION_RULE_H_
