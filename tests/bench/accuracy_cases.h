// The shared models that accuracy is measured on, with the data of each.

#ifndef OPTFARM_TESTS_BENCH_ACCURACY_CASES_H_
#define OPTFARM_TESTS_BENCH_ACCURACY_CASES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/optimize/samples/model_tensor.h"
#include "engine/runtime/core/tensor.h"
#include "optfarm/v1/recipes.pb.h"

namespace optfarm::bench {

enum class DataKind {
  // Pictures or sounds below a folder.
  kFolder,
  // An array file whose first axis is the sample.
  kArray,
  // Boards of Connect Four after random legal moves, one plane a player.
  kBoards,
  // The numbers 0, 1, ... one a sample.
  kNumbers,
};

struct AccuracyCase {
  std::string name;
  // Below the shared folder, as all paths here.
  std::string model;
  std::vector<optimize::ModelTensor> inputs;
  std::vector<std::string> outputs;
  DataKind data = DataKind::kFolder;
  std::string path;
  // Arrays fed unchanged with every sample, one for each input behind the
  // first.
  std::vector<std::string> constants;
  v1::Preprocessing preprocessing;
  // A labels file; "folders": their names; empty: no labels.
  std::string labels;
  // The outputs' first dimension is the number of things found. Agreement is
  // then the share of samples with the same number, and SNR that of those.
  bool finds_things = false;
  // Samples used at most; 0: all.
  int64_t most = 0;
  // The aims of the int8 recipe; 0: none of that kind.
  // UNITS: percentage points, fraction, decibel.
  double most_top1_loss = 0;
  double least_agreement = 0;
  double least_snr_db = 0;
  // Its weights are codes already: no file can be a quarter of it.
  bool is_coded = false;
};

const std::vector<AccuracyCase>& AccuracyCases();

// A case's data, read whole.
struct AccuracySamples {
  // One tensor an input.
  std::vector<std::vector<runtime::Tensor>> samples;
  // One a sample, -1 for none; empty when the case has no labels.
  std::vector<int64_t> labels;
  // Which samples are calibrated with, and which measured: no sample is both.
  std::vector<int64_t> calibration;
  std::vector<int64_t> measured;
};

// ERRORS: those of reading the files.
absl::StatusOr<AccuracySamples> LoadSamples(const AccuracyCase& c,
                                            const std::string& shared);

}  // namespace optfarm::bench

#endif  // OPTFARM_TESTS_BENCH_ACCURACY_CASES_H_
