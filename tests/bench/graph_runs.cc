// Runs a graph so many times, on one thread and made-up input, and does nothing
// else: the difference of two counts of instructions, with more and with fewer
// runs, is what a run takes (scripts/arm_instructions).
//
//   graph_runs FILE RUNS

#include <cstdio>

#include "absl/strings/numbers.h"
#include "base/log.h"
#include "engine/benchmark/loaded_variant.h"

int main(int argc, char** argv) {
  int runs = 0;
  if (argc != 3 || !absl::SimpleAtoi(argv[2], &runs) || runs < 1) {
    std::fprintf(stderr, "usage: graph_runs FILE RUNS\n");
    return 2;
  }
  optfarm::benchmark::BenchmarkVariant variant;
  variant.name = "graph";
  variant.graph_path = argv[1];
  const auto loaded = optfarm::benchmark::LoadVariant(variant, {}, 1);
  if (!loaded.ok()) {
    optfarm::LogError(loaded.status().message());
    return 1;
  }
  for (int i = 0; i < runs; ++i) {
    const auto outputs = loaded->session->Run(loaded->inputs);
    if (outputs.ok()) continue;
    optfarm::LogError(outputs.status().message());
    return 1;
  }
  return 0;
}
