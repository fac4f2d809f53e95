// Sums the traces of many runs up and prints them as TensorFlow's
// StatSummarizer does: the nodes in run order, by time and by memory, the time
// of each op type, and a short summary. Formatting only; nothing is measured
// here.

#ifndef OPTFARM_ENGINE_BENCHMARK_STAT_SUMMARIZER_H_
#define OPTFARM_ENGINE_BENCHMARK_STAT_SUMMARIZER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "engine/benchmark/stat.h"
#include "engine/runtime/session/session.h"

namespace optfarm::benchmark {

struct StatSummarizerOptions {
  bool show_run_order = true;
  // Nodes printed; 0: all. The same for the other limits.
  int run_order_limit = 0;
  bool show_time = true;
  int time_limit = 10;
  bool show_memory = true;
  int memory_limit = 10;
  bool show_type = true;
  bool show_summary = true;
};

// One node over all runs.
struct NodeStats {
  std::string name;
  std::string op;
  // UNITS: microseconds since the run's start; microseconds; bytes.
  Stat start;
  Stat duration;
  Stat memory;
  // More than one a run inside a loop.
  int64_t times_called = 0;
  // In the newest run.
  std::vector<runtime::OutputInfo> outputs;
};

// All nodes of one op.
struct TypeStats {
  std::string op;
  // UNITS: nodes; microseconds in one run; bytes; calls in one run.
  int64_t nodes = 0;
  int64_t micros = 0;
  int64_t memory = 0;
  int64_t times_called = 0;
};

class StatSummarizer {
 public:
  explicit StatSummarizer(const StatSummarizerOptions& options = {});

  void AddRun(const runtime::RunTrace& trace);

  // In the order of the first run.
  const std::vector<NodeStats>& nodes() const { return nodes_; }
  // Slowest first.
  std::vector<TypeStats> Types() const;
  // One value a run. A run's time is the sum over its nodes, not wall time.
  const Stat& run_micros() const { return run_micros_; }
  const Stat& run_bytes() const { return run_bytes_; }

  // The sections that the options ask for, each followed by an empty line.
  std::string Report() const;
  // Name, number of outputs, and dtype, rank and dimensions of each, separated
  // by tabs, in run order.
  std::string OutputSizes() const;

 private:
  enum class Metric { kRunOrder, kTime, kMemory };

  std::string NodeSection(absl::string_view title, Metric metric,
                          int limit) const;
  std::string TypeSection() const;
  std::string ShortSummary() const;

  StatSummarizerOptions options_;
  std::vector<NodeStats> nodes_;
  absl::flat_hash_map<std::string, size_t> index_;
  Stat run_micros_;
  Stat run_bytes_;
};

}  // namespace optfarm::benchmark

#endif  // OPTFARM_ENGINE_BENCHMARK_STAT_SUMMARIZER_H_
