// Where a dataset's samples come from: which files or arrays feed which input.
// Only dataset.cc and dataset_sources.cc include this file.

#ifndef OPTFARM_ENGINE_OPTIMIZE_SAMPLES_DATASET_SOURCES_H_
#define OPTFARM_ENGINE_OPTIMIZE_SAMPLES_DATASET_SOURCES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/optimize/samples/array_input.h"
#include "engine/optimize/samples/local_data.h"
#include "engine/optimize/samples/model_tensor.h"
#include "engine/optimize/samples/picture_input.h"
#include "engine/optimize/samples/record_input.h"
#include "engine/optimize/samples/sample_files.h"
#include "engine/optimize/samples/sound_input.h"

namespace optfarm::optimize {

enum class Source { kNone, kArray, kPicture, kSound, kRecord, kRandom };

// Where one input's values come from.
struct InputSource {
  ModelTensor input;
  Source source = Source::kNone;
  ArrayInput array;
  PictureInput picture;
  SoundPart sound_part = SoundPart::kFile;
  // Which of the dataset's records, and the feature of them.
  size_t records = 0;
  RecordInput record;
};

struct DatasetSources {
  v1::Preprocessing preprocessing;
  // Of the samples; empty: there are none.
  std::string folder;
  // Of pictures or sounds; records have none.
  SampleFiles files;
  std::vector<ExampleRecords> records;
  std::vector<InputSource> sources;
  int64_t size = 0;
  uint64_t seed = 0;
  bool is_random = false;
  std::vector<std::string> fed;
  std::vector<std::string> warnings;

  // All sources: first those that name their input, then the samples, which
  // feed the others.
  absl::Status AddSources(const LocalData& data);
  absl::Status AddInput(const LocalData& data, int source);
  absl::Status AddRecordFile(const v1::DataSource& source,
                             const std::string& path, InputSource* target);
  absl::Status AddArray(const v1::DataSource& source, const std::string& path,
                        InputSource* target);
  absl::Status AddSamples(const LocalData& data, int source);
  absl::Status AddRecordFolder(const v1::DataSource& source,
                               const std::vector<std::string>& paths);
  absl::Status AssignSounds();
  absl::Status AssignPictures(const v1::DataSource& source);
  // The dataset has so many samples.
  // ERRORS: InvalidArgument when other data have another number.
  absl::Status SetSize(absl::string_view what, int64_t samples);
  absl::Status CheckAllFed() const;
  std::vector<InputSource*> Unfed();
  std::string Names() const;
  const ExampleRecords* FirstRecords() const {
    return records.empty() ? nullptr : &records[0];
  }
};

}  // namespace optfarm::optimize

#endif  // OPTFARM_ENGINE_OPTIMIZE_SAMPLES_DATASET_SOURCES_H_
