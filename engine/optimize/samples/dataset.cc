#include "engine/optimize/samples/dataset.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/optimize/samples/dataset_sources.h"
#include "engine/optimize/samples/random_input.h"
#include "engine/optimize/samples/sample_choice.h"

namespace optfarm::optimize {

using runtime::Tensor;

Dataset::Dataset(std::unique_ptr<DatasetSources> data)
    : data_(std::move(data)) {}
Dataset::Dataset(Dataset&&) noexcept = default;
Dataset& Dataset::operator=(Dataset&&) noexcept = default;
Dataset::~Dataset() = default;

absl::StatusOr<Dataset> Dataset::Open(const LocalData& local,
                                      const v1::Preprocessing& preprocessing,
                                      absl::Span<const ModelTensor> inputs) {
  auto data = std::make_unique<DatasetSources>();
  data->preprocessing = preprocessing;
  for (const ModelTensor& input : inputs) {
    data->sources.emplace_back().input = input;
  }
  OPTFARM_RETURN_IF_ERROR(data->AddSources(local));
  OPTFARM_RETURN_IF_ERROR(data->CheckAllFed());
  // Nothing but values that are the same every time: one sample.
  data->size = std::max<int64_t>(data->size, 1);
  return Dataset(std::move(data));
}

absl::StatusOr<Dataset> Dataset::MakeRandom(
    absl::Span<const ModelTensor> inputs, int64_t samples, uint64_t seed) {
  auto data = std::make_unique<DatasetSources>();
  data->is_random = true;
  data->size = samples;
  data->seed = seed;
  for (const ModelTensor& input : inputs) {
    const std::string name = graph::ToString(input.name);
    OPTFARM_RETURN_IF_ERROR(CheckMakeUp(input));
    InputSource& source = data->sources.emplace_back();
    source.input = input;
    source.source = Source::kRandom;
    data->fed.push_back(absl::StrCat(
        name, ": ", samples, " made-up samples, seed ", seed,
        input.dtype == tensorflow::DT_FLOAT ? ", uniform in -1..1" : "",
        input.is_wav_file ? ", one second of noise each" : ""));
  }
  return Dataset(std::move(data));
}

int64_t Dataset::size() const { return data_->size; }

absl::StatusOr<std::vector<Tensor>> Dataset::Sample(int64_t index) const {
  const DatasetSources& data = *data_;
  const std::string path = data.files.paths.empty()
                               ? ""
                               : JoinPath(data.folder, data.files.paths[index]);
  // What several inputs may read parts of.
  std::string sound;
  if (!path.empty() && data.files.kind == SampleKind::kSound) {
    OPTFARM_ASSIGN_OR_RETURN(sound, ReadFile(path, kMaxWavBytes));
  }
  std::vector<tensorflow::Example> examples;
  for (const ExampleRecords& records : data.records) {
    OPTFARM_ASSIGN_OR_RETURN(examples.emplace_back(), records.Read(index));
  }
  std::vector<Tensor> values;
  uint64_t input_number = 0;
  for (const InputSource& source : data.sources) {
    ++input_number;
    absl::StatusOr<Tensor> value = Tensor();
    switch (source.source) {
      case Source::kArray:
        value = source.array.Sample(index);
        break;
      case Source::kPicture:
        value = ReadPicture(path, source.picture);
        break;
      case Source::kRecord:
        value = source.record.Value(examples[source.records]);
        break;
      case Source::kSound:
        value = SoundValue(source.sound_part, source.input, sound);
        if (!value.ok()) {
          value = Annotate(value.status(),
                           absl::StrCat("While reading '", path, "'"));
        }
        break;
      default:
        value =
            RandomValue(source.input, data.seed * 1000003 +
                                          static_cast<uint64_t>(index) * 1009 +
                                          input_number);
    }
    if (!value.ok()) return value.status();
    values.push_back(*std::move(value));
  }
  return values;
}

std::string Dataset::SampleName(int64_t index) const {
  if (!data_->files.paths.empty()) return data_->files.paths[index];
  const ExampleRecords* records = data_->FirstRecords();
  return records != nullptr ? records->NameOf(index)
                            : absl::StrCat("sample ", index);
}

std::string Dataset::SubfolderOf(int64_t index) const {
  if (data_->files.paths.empty()) return "";
  const std::string& path = data_->files.paths[index];
  const size_t slash = path.find('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

absl::StatusOr<RecordLabels> Dataset::LabelsOfRecords() const {
  const ExampleRecords* records = data_->FirstRecords();
  if (records == nullptr) return RecordLabels();
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::Example first, records->Read(0));
  RecordLabels labels;
  labels.feature = FindLabelFeature(first);
  if (labels.feature.empty()) return labels;
  OPTFARM_ASSIGN_OR_RETURN(labels.classes,
                           ReadLabels(*records, labels.feature));
  return labels;
}

std::vector<int64_t> Dataset::Choose(int64_t most, uint64_t seed) const {
  std::vector<int64_t> all(data_->size);
  for (int64_t i = 0; i < data_->size; ++i) all[i] = i;
  return ChooseSome(std::move(all), most <= 0 ? data_->size : most, seed);
}

const std::vector<std::string>& Dataset::fed() const { return data_->fed; }
const std::vector<std::string>& Dataset::warnings() const {
  return data_->warnings;
}
bool Dataset::is_random() const { return data_->is_random; }

}  // namespace optfarm::optimize
