// tf.Examples of TFRecord files become the values of a model's inputs: one
// record a sample, one feature an input.

#ifndef OPTFARM_ENGINE_OPTIMIZE_SAMPLES_RECORD_INPUT_H_
#define OPTFARM_ENGINE_OPTIMIZE_SAMPLES_RECORD_INPUT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/formats/files/tfrecord.h"
#include "engine/optimize/samples/model_tensor.h"
#include "engine/optimize/samples/normalization.h"
#include "engine/optimize/samples/picture_input.h"
#include "engine/runtime/core/tensor.h"
#include "optfarm/v1/jobs.pb.h"
#include "optfarm/v1/recipes.pb.h"
#include "tensorflow/core/example/example.pb.h"

namespace optfarm::optimize {

// Whether the file begins as a TFRecord file does.
bool IsRecords(const std::string& path);

// The records of one or more files, one file after the other.
// THREADS: const methods may run concurrently.
class ExampleRecords {
 public:
  // ERRORS: those of the files; InvalidArgument for files without records.
  static absl::StatusOr<ExampleRecords> Open(
      const std::vector<std::string>& paths);

  int64_t size() const { return first_.back(); }
  // ERRORS: those of reading the record; InvalidArgument for one that is no
  // tf.Example.
  absl::StatusOr<tensorflow::Example> Read(int64_t index) const;
  // "train.tfrecord#7".
  std::string NameOf(int64_t index) const;

 private:
  struct Place {
    size_t file = 0;
    int64_t record = 0;
  };
  Place Find(int64_t index) const;

  std::vector<std::string> names_;
  std::vector<formats::RecordFile> files_;
  // Number of the first record of each file, and of all records.
  std::vector<int64_t> first_;
};

// How a feature feeds an input.
struct RecordInput {
  std::string feature;
  ModelTensor input;
  // One value that is a JPEG or PNG file; decoded by `picture`.
  bool is_picture = false;
  PictureInput picture;
  // One value that is a WAV file, for an input of float samples.
  bool is_sound = false;
  // For numbers; a uint8 for a float input is scaled by it.
  Normalization normalization;
  // "feature 'image/encoded', pictures resized to 128x128, ...".
  std::string description;

  // ERRORS: InvalidArgument when the example has no such feature or another
  // kind or number of values.
  absl::StatusOr<runtime::Tensor> Value(
      const tensorflow::Example& example) const;
};

// Decides by the first example. The source may name the feature; otherwise it
// is the one that fits the input.
// ERRORS: NotFound with the names there are for a feature that is not in it;
// InvalidArgument when it does not fit the input, or none or several do.
absl::StatusOr<RecordInput> PlanRecordInput(
    const v1::DataSource& source, const v1::Preprocessing& preprocessing,
    const ModelTensor& input, const tensorflow::Example& first);

// The feature that holds the class by the names usual for it; empty when there
// is none.
std::string FindLabelFeature(const tensorflow::Example& first);

// The one whole number of a feature.
// ERRORS: InvalidArgument when it does not have exactly one.
absl::StatusOr<int64_t> LabelOf(const tensorflow::Example& example,
                                const std::string& feature);

// The same of all records.
absl::StatusOr<std::vector<int64_t>> ReadLabels(const ExampleRecords& records,
                                                const std::string& feature);

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_SAMPLES_RECORD_INPUT_H_
