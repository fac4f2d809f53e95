// How far the answers of two runs are apart: two machines', or two runtimes'.

#ifndef OPTFARM_ENGINE_BENCHMARK_ANSWER_DIFFERENCE_H_
#define OPTFARM_ENGINE_BENCHMARK_ANSWER_DIFFERENCE_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "engine/graph/graph.h"
#include "engine/runtime/core/tensor.h"
#include "optfarm/v1/measurement.pb.h"

namespace optfarm::benchmark {

// Gathers one output after the other.
class AnswerDifference {
 public:
  // Types that are no numbers are passed over.
  // ERRORS: Internal when type or shape differ; `reference` is called that.
  absl::Status Add(const std::string& name, const runtime::Tensor& answer,
                   const runtime::Tensor& expected,
                   absl::string_view reference);

  // Everything but the message; passed when nothing differs by more.
  v1::NumericCheck Check(double allowed) const;

  // UNITS: dB. Power of what was expected over that of the difference, in all
  // outputs together. None: nothing differs, or it is no number.
  std::optional<double> SnrDb() const;

  // UNITS: the answers'. What another order of additions explains; more where
  // rounding to whole steps makes small differences large ones.
  double Allowed(bool quantized) const;

 private:
  template <typename T>
  void AddNumbers(const runtime::Tensor& answer,
                  const runtime::Tensor& expected);

  int outputs_ = 0;
  double max_error_ = 0;
  double max_value_ = 0;
  // Sums of squares over the elements of which both are finite.
  double signal_ = 0;
  double noise_ = 0;
};

// Whether it has ops that quantize.
bool IsQuantized(const graph::Graph& graph);

}  // namespace optfarm::benchmark

#endif  // OPTFARM_ENGINE_BENCHMARK_ANSWER_DIFFERENCE_H_
