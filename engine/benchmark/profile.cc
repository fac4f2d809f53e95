#include "engine/benchmark/profile.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace optfarm::benchmark {
namespace {

constexpr int kMaxSlowestNodes = 20;
// Of a loop that goes round often; more would make a large result.
constexpr size_t kMaxSteps = 2000;

struct Total {
  std::string op;
  double micros = 0;
  int64_t count = 0;
};

// Largest first; equal ones by name.
std::vector<std::pair<std::string, Total>> Sorted(
    const std::map<std::string, Total>& totals) {
  std::vector<std::pair<std::string, Total>> list(totals.begin(), totals.end());
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return a.second.micros > b.second.micros;
  });
  return list;
}

}  // namespace

void FillProfile(absl::Span<const runtime::RunTrace> traces,
                 v1::Measurement* measurement) {
  if (traces.empty()) return;
  const auto runs = static_cast<double>(traces.size());
  std::map<std::string, Total> by_op;
  std::map<std::string, Total> by_node;
  for (const runtime::RunTrace& trace : traces) {
    for (const runtime::NodeTiming& node : trace.nodes) {
      const double micros = absl::ToDoubleMicroseconds(node.duration);
      by_op[node.op].micros += micros;
      ++by_op[node.op].count;
      Total& total = by_node[node.name];
      total.op = node.op;
      total.micros += micros;
    }
  }
  for (const auto& [op, total] : Sorted(by_op)) {
    v1::OpTime* time = measurement->add_op_times();
    time->set_op(op);
    time->set_count(total.count / static_cast<int64_t>(traces.size()));
    time->set_total_us(total.micros / runs);
  }
  for (const auto& [name, total] : Sorted(by_node)) {
    if (measurement->slowest_nodes_size() == kMaxSlowestNodes) break;
    v1::NodeTime* time = measurement->add_slowest_nodes();
    time->set_node(name);
    time->set_op(total.op);
    time->set_total_us(total.micros / runs);
  }
}

void FillSteps(absl::Span<const runtime::RunTrace> traces,
               const runtime::StepWorks& works, v1::Measurement* measurement) {
  if (traces.empty()) return;
  const size_t count = std::min(traces[0].nodes.size(), kMaxSteps);
  for (size_t i = 0; i < count; ++i) {
    std::vector<double> micros;
    for (const runtime::RunTrace& trace : traces) {
      if (trace.nodes.size() != traces[0].nodes.size()) continue;
      micros.push_back(absl::ToDoubleMicroseconds(trace.nodes[i].duration));
    }
    v1::StepTime* step = measurement->add_steps();
    *step->mutable_work() = works.Of(traces[0].nodes[i]).To<v1::StepWork>();
    std::nth_element(micros.begin(), micros.begin() + micros.size() / 2,
                     micros.end());
    step->set_median_us(micros[micros.size() / 2]);
  }
}

}  // namespace optfarm::benchmark
