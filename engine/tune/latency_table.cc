#include "engine/tune/latency_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/graph/ops/op_table.h"

namespace optfarm::tune {
namespace {

// What a newer time of a key counts at least.
constexpr int kMostTimes = 8;
// Entries that an estimate is made from.
constexpr size_t kNeighbours = 4;
// UNITS: microseconds that any step takes.
constexpr double kLeastStep = 0.05;
// Distances below this (a factor of 1.05) do not tell entries apart.
constexpr double kNear = 0.05;

// What an op is most like where nothing of its kind was measured: its first
// part.
std::string Head(const std::string& op) {
  const std::pair<std::string, std::string> parts =
      absl::StrSplit(op, absl::MaxSplits('+', 1));
  return parts.first;
}

}  // namespace

bool ConvertsPrecision(absl::string_view op) {
  return graph::IsDequantize(op) || graph::IsQuantize(op);
}

std::string MachineOf(const v1::Measurement& measurement) {
  const v1::Environment& machine = measurement.before();
  std::string text = absl::StrCat(machine.cpu_model(), "; ", machine.kernels(),
                                  "; ", machine.build_version(), "; ",
                                  measurement.threads(), " threads");
  // Cores of one machine may differ.
  if (!measurement.cpu_affinity().empty()) {
    absl::StrAppend(&text, " on CPUs ",
                    absl::StrJoin(measurement.cpu_affinity(), ","));
  }
  return text;
}

LatencyTable::Entry LatencyTable::EntryOf(const v1::StepWork& step) {
  Entry entry;
  entry.op = step.op();
  entry.work = step.multiply_adds();
  entry.bytes = static_cast<double>(step.input_bytes()) +
                static_cast<double>(step.output_bytes()) +
                // What makes no products reads its constants once at most.
                (entry.work > 0 ? static_cast<double>(step.weight_bytes()) : 0);
  for (const double value :
       {entry.work, static_cast<double>(step.input_bytes()),
        static_cast<double>(step.weight_bytes()),
        static_cast<double>(step.output_bytes())}) {
    entry.features.push_back(std::log1p(std::max(value, 0.0)));
  }
  return entry;
}

void LatencyTable::Add(const v1::StepTime& step) {
  const double us = step.median_us();
  if (!std::isfinite(us) || us <= 0 || step.work().key().empty()) return;
  const auto [at, is_new] = entries_.try_emplace(step.work().key());
  Entry& entry = at->second;
  if (is_new) {
    entry = EntryOf(step.work());
    by_op_[entry.op].push_back(&entry);
  }
  entry.times = std::min(entry.times + 1, kMostTimes);
  entry.us += (us - entry.us) / entry.times;
}

double LatencyTable::EstimateFrom(
    const Entry& wanted, const std::vector<const Entry*>& alike) const {
  std::vector<std::pair<double, const Entry*>> near;
  for (const Entry* entry : alike) {
    double squares = kNear * kNear;
    for (size_t i = 0; i < wanted.features.size(); ++i) {
      const double apart = wanted.features[i] - entry->features[i];
      squares += apart * apart;
    }
    near.emplace_back(squares, entry);
  }
  const size_t count = std::min(near.size(), kNeighbours);
  std::partial_sort(
      near.begin(), near.begin() + static_cast<long>(count), near.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  double sum = 0, weights = 0;
  for (size_t i = 0; i < count; ++i) {
    const Entry& entry = *near[i].second;
    // Between as much work and as many bytes.
    double ratio = (wanted.bytes + 1) / (entry.bytes + 1);
    if (wanted.work > 0 && entry.work > 0) {
      ratio = std::pow(ratio, 0.25) * std::pow(wanted.work / entry.work, 0.75);
    }
    const double weight = 1 / near[i].first;
    sum += weight * std::log(std::max(kLeastStep, entry.us * ratio));
    weights += weight;
  }
  return std::exp(sum / weights);
}

double LatencyTable::Estimate(const v1::StepWork& step) const {
  const Entry wanted = EntryOf(step);
  if (const auto same = by_op_.find(wanted.op); same != by_op_.end()) {
    return EstimateFrom(wanted, same->second);
  }
  const std::string head = Head(wanted.op);
  std::vector<const Entry*> alike, others;
  for (const auto& [key, entry] : entries_) {
    if (Head(entry.op) == head) alike.push_back(&entry);
    if ((entry.work > 0) == (wanted.work > 0)) others.push_back(&entry);
  }
  if (!alike.empty()) return EstimateFrom(wanted, alike);
  return others.empty() ? kLeastStep : EstimateFrom(wanted, others);
}

LatencyTable::Prediction LatencyTable::Predict(
    const google::protobuf::RepeatedPtrField<v1::StepWork>& steps) const {
  Prediction prediction;
  for (const v1::StepWork& step : steps) {
    const auto known = entries_.find(step.key());
    if (known != entries_.end()) {
      prediction.us += known->second.us;
      ++prediction.known;
    } else {
      prediction.us += Estimate(step);
      ++prediction.estimated;
    }
  }
  prediction.us = Whole(prediction.us);
  return prediction;
}

double LatencyTable::Conversion(double float_bytes) const {
  std::vector<const Entry*> alike;
  for (const auto& [op, entries] : by_op_) {
    if (!ConvertsPrecision(op)) continue;
    alike.insert(alike.end(), entries.begin(), entries.end());
  }
  if (alike.empty()) return 0;
  v1::StepWork step;
  step.set_input_bytes(static_cast<int64_t>(float_bytes));
  step.set_output_bytes(static_cast<int64_t>(float_bytes / 4));
  return Whole(EstimateFrom(EntryOf(step), alike));
}

void LatencyTable::Correct(double steps_us, double measured_us) {
  if (!(steps_us > 0) || !(measured_us > 0)) return;
  scales_.push_back(measured_us / steps_us);
  std::vector<double> sorted = scales_;
  const auto middle = sorted.begin() + static_cast<long>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  scale_ = *middle;
}

}  // namespace optfarm::tune
