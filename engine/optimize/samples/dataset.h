// The user's sample data: pictures, sounds and arrays, turned into what the
// model is fed, one sample at a time.
//
// What is fed is described by a v1::Dataset (jobs.proto). Of TFRecord files a
// feature of each record, a tf.Example, feeds an input: an encoded picture or
// sound, a list of numbers, or the bytes of an array; a feature that is not
// named is found by what fits. An array feeds one input; where its layout is
// unspecified its first axis is the sample:
//   - with one axis more than the input, each slice is fed as it is;
//   - with as many axes, each slice is fed as a batch of one;
//   - with as many elements in a slice, each slice takes the input's shape;
//   - a scalar, or an array that has exactly the input's fully known shape with
//     a first dimension other than 1, is fed unchanged with every sample.
// An array of uint8 for a float input is scaled like a picture.

#ifndef OPTFARM_ENGINE_OPTIMIZE_SAMPLES_DATASET_H_
#define OPTFARM_ENGINE_OPTIMIZE_SAMPLES_DATASET_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/optimize/samples/local_data.h"
#include "engine/optimize/samples/model_tensor.h"
#include "engine/runtime/core/tensor.h"
#include "optfarm/v1/recipes.pb.h"

namespace optfarm::optimize {

struct DatasetSources;

// The classes that stand in the samples' records.
struct RecordLabels {
  // Empty: the records have none.
  std::string feature;
  // One a sample.
  std::vector<int64_t> classes;
};

// THREADS: const methods may run concurrently.
class Dataset {
 public:
  // ERRORS: InvalidArgument or NotFound for data that does not fit the inputs,
  // an input without data, arrays of different length, or samples of several
  // kinds, each saying what to give.
  static absl::StatusOr<Dataset> Open(const LocalData& data,
                                      const v1::Preprocessing& preprocessing,
                                      absl::Span<const ModelTensor> inputs);

  // Seeded values for models that come without data: uniform in -1..1 for
  // float, 0..255 for uint8, small whole numbers for others. Unknown
  // dimensions are 1.
  // ERRORS: InvalidArgument for an input of unknown shape or of a dtype that
  // no values can be made up for (string).
  static absl::StatusOr<Dataset> MakeRandom(
      absl::Span<const ModelTensor> inputs, int64_t samples, uint64_t seed);

  Dataset(Dataset&&) noexcept;
  Dataset& operator=(Dataset&&) noexcept;
  ~Dataset();

  int64_t size() const;
  // One tensor an input, in the order of the inputs.
  // ERRORS: InvalidArgument or NotFound naming the file that cannot be used.
  absl::StatusOr<std::vector<runtime::Tensor>> Sample(int64_t index) const;
  // The path below the folder; "sample 7" for arrays, "train.tfrecord#7" for
  // records.
  std::string SampleName(int64_t index) const;
  // The first folder of the path, or "" when the file lies at the top.
  std::string SubfolderOf(int64_t index) const;

  // Goes through all records for a feature that is usually the class. Nothing
  // for other data.
  // ERRORS: those of reading the records; InvalidArgument for one without it.
  absl::StatusOr<RecordLabels> LabelsOfRecords() const;

  // At most `most` sample numbers, ascending; which ones depends on `seed`
  // alone. 0: all.
  std::vector<int64_t> Choose(int64_t most, uint64_t seed) const;

  // One sentence an input about what is fed.
  const std::vector<std::string>& fed() const;
  const std::vector<std::string>& warnings() const;
  bool is_random() const;

 private:
  explicit Dataset(std::unique_ptr<DatasetSources> data);
  std::unique_ptr<DatasetSources> data_;
};

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_SAMPLES_DATASET_H_
