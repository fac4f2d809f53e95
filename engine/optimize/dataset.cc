#include "engine/optimize/dataset.h"

#include <algorithm>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status_macros.h"
#include "engine/formats/wav.h"
#include "engine/optimize/array_input.h"
#include "engine/optimize/picture_input.h"
#include "engine/optimize/random_input.h"

namespace optfarm::optimize {
namespace {

using runtime::Shape;
using runtime::Tensor;

constexpr size_t kMaxFiles = 1'000'000;
constexpr int kMaxFolderDepth = 16;
// UNITS: bytes. An hour of 16-bit stereo at 48 kHz.
constexpr uint64_t kMaxWavBytes = uint64_t{700} << 20;

enum class Source {
  kNone,
  kArray,
  kPicture,
  // A WAV file's bytes as one string.
  kWavFile,
  // What DecodeWav makes of it: samples, and the sample rate.
  kWavSamples,
  kWavRate,
  kRandom,
};

struct InputSource {
  ModelTensor input;
  Source source = Source::kNone;
  ArrayInput array;
  PictureInput picture;
};

bool IsPicture(const std::string& path) {
  const std::string extension = LowerExtension(path);
  return extension == "jpg" || extension == "jpeg" || extension == "png";
}

bool IsSound(const std::string& path) { return LowerExtension(path) == "wav"; }

// Paths below `root` of pictures and sounds, folders in order of their names.
absl::Status FindFiles(const std::string& root, const std::string& below,
                       int depth, std::vector<std::string>* files) {
  OPTFARM_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                           ListFolder(JoinPath(root, below)));
  for (const std::string& name : names) {
    const std::string path = below.empty() ? name : JoinPath(below, name);
    if (IsFolder(JoinPath(root, path))) {
      if (depth < kMaxFolderDepth) {
        OPTFARM_RETURN_IF_ERROR(FindFiles(root, path, depth + 1, files));
      }
    } else if (IsPicture(path) || IsSound(path)) {
      files->push_back(path);
    }
    if (files->size() > kMaxFiles) {
      return absl::InvalidArgumentError(absl::StrCat(
          "Folder '", root, "' has more than ", kMaxFiles, " samples"));
    }
  }
  return absl::OkStatus();
}

std::vector<double> OrDefault(const google::protobuf::RepeatedField<double>& f,
                              std::optional<double> otherwise, double silent) {
  if (f.empty()) return {otherwise.value_or(silent)};
  return {f.begin(), f.end()};
}

bool IsScalarInt(const ModelTensor& input) {
  return input.dtype == tensorflow::DT_INT32 &&
         (!input.shape.has_value() || input.shape->empty());
}

// Float samples as DecodeWav makes them, cut or filled up with silence to the
// length the input wants.
absl::StatusOr<Tensor> WavTensor(const formats::WavInfo& info,
                                 const ModelTensor& input) {
  int64_t frames = info.frames;
  if (input.shape.has_value() && input.shape->size() == 2 &&
      (*input.shape)[0] > 0) {
    frames = (*input.shape)[0];
  }
  if (frames > static_cast<int64_t>(kMaxWavBytes)) {
    return absl::InvalidArgumentError("the input wants too many samples");
  }
  OPTFARM_ASSIGN_OR_RETURN(const Shape shape,
                           Shape::FromDims({frames, info.channels}));
  OPTFARM_ASSIGN_OR_RETURN(Tensor tensor,
                           Tensor::Zeros(tensorflow::DT_FLOAT, shape));
  const std::vector<float> samples = formats::WavSamples(info);
  std::copy_n(samples.begin(),
              std::min<size_t>(samples.size(), shape.num_elements()),
              tensor.data<float>());
  return tensor;
}

absl::StatusOr<Tensor> SoundValue(const InputSource& source,
                                  const std::string& bytes) {
  OPTFARM_ASSIGN_OR_RETURN(const formats::WavInfo info,
                           formats::ParseWav(bytes));
  switch (source.source) {
    case Source::kWavFile:
      return Tensor::Scalar<std::string>(bytes);
    case Source::kWavRate:
      return Tensor::Scalar<int32_t>(info.sample_rate);
    default:
      return WavTensor(info, source.input);
  }
}

}  // namespace

struct Dataset::Data {
  std::string folder;
  std::vector<std::string> files;
  std::vector<InputSource> sources;
  int64_t size = 0;
  uint64_t seed = 0;
  bool is_random = false;
  std::vector<std::string> fed;
  std::vector<std::string> warnings;

  absl::Status AddArrays(const DatasetOptions& options);
  absl::Status AddFolder(const DatasetOptions& options);
  absl::Status AssignSounds();
  absl::Status AssignPictures(const DatasetOptions& options);
  absl::Status CheckAllFed() const;
  std::vector<InputSource*> Unfed();
  std::string Names() const;
};

std::vector<InputSource*> Dataset::Data::Unfed() {
  std::vector<InputSource*> unfed;
  for (InputSource& source : sources) {
    if (source.source == Source::kNone) unfed.push_back(&source);
  }
  return unfed;
}

std::string Dataset::Data::Names() const {
  return absl::StrJoin(sources, ", ", [](std::string* out, const auto& s) {
    absl::StrAppend(out, "'", graph::ToString(s.input.name), "'");
  });
}

absl::Status Dataset::Data::AddArrays(const DatasetOptions& options) {
  for (const auto& [name, path] : options.arrays) {
    InputSource* target = nullptr;
    if (name.empty() && sources.size() == 1) target = &sources[0];
    absl::StatusOr<graph::TensorName> wanted = graph::ParseTensorName(name);
    for (InputSource& source : sources) {
      if (wanted.ok() && source.input.name == *wanted) target = &source;
    }
    if (target == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", path, "' is for input '", name,
                       "', which is none of the model's inputs: ", Names()));
    }
    if (target->source != Source::kNone) {
      return absl::InvalidArgumentError(
          absl::StrCat("Input '", graph::ToString(target->input.name),
                       "' is given data twice"));
    }
    OPTFARM_ASSIGN_OR_RETURN(
        target->array,
        LoadArrayInput(
            path, target->input,
            OrDefault(options.preprocessing.mean(), options.input_mean, 0),
            OrDefault(options.preprocessing.std(), options.input_std, 1)));
    target->source = Source::kArray;
    fed.push_back(absl::StrCat(
        graph::ToString(target->input.name), ": ", target->array.description,
        target->array.constant ? ", the same for every sample"
                               : ", one sample a slice"));
    const int64_t samples = target->array.samples();
    if (samples == 0 && !target->array.constant) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", path, "' holds no samples"));
    }
    if (size > 0 && samples > 0 && samples != size) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", path, "' holds ", samples, " samples, other data ", size));
    }
    size = std::max(size, samples);
  }
  return absl::OkStatus();
}

absl::Status Dataset::Data::AssignSounds() {
  std::vector<InputSource*> unfed = Unfed();
  for (InputSource* source : unfed) {
    if (source->input.dtype != tensorflow::DT_STRING) continue;
    source->source = Source::kWavFile;
    fed.push_back(absl::StrCat(graph::ToString(source->input.name), ": ",
                               files.size(), " WAV files as they are"));
    return absl::OkStatus();
  }
  bool found = false;
  for (InputSource* source : unfed) {
    if (source->input.dtype == tensorflow::DT_FLOAT && !found) {
      found = true;
      source->source = Source::kWavSamples;
      fed.push_back(absl::StrCat(graph::ToString(source->input.name), ": ",
                                 "samples of ", files.size(),
                                 " WAV files, -1..1"));
    } else if (IsScalarInt(source->input)) {
      source->source = Source::kWavRate;
      fed.push_back(absl::StrCat(graph::ToString(source->input.name),
                                 ": sample rate of the WAV files"));
    }
  }
  if (found) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "Folder '", folder, "' holds sounds, but none of the inputs ", Names(),
      " takes a string or samples"));
}

absl::Status Dataset::Data::AssignPictures(const DatasetOptions& options) {
  absl::Status first_error;
  for (InputSource* source : Unfed()) {
    absl::StatusOr<PictureInput> plan =
        PlanPictureInput(source->input, options.preprocessing,
                         options.input_mean, options.input_std);
    if (!plan.ok()) {
      if (first_error.ok()) first_error = plan.status();
      continue;
    }
    source->picture = *std::move(plan);
    source->source = Source::kPicture;
    fed.push_back(absl::StrCat(graph::ToString(source->input.name), ": ",
                               files.size(), " pictures, ",
                               source->picture.Describe()));
    if (source->picture.scale_unknown) {
      warnings.push_back(absl::StrCat(
          "Pictures were fed to '", graph::ToString(source->input.name),
          "' as 0..255, because neither the recipe nor --input_mean and "
          "--input_std say otherwise; most models want another scale."));
    }
    return absl::OkStatus();
  }
  if (first_error.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Folder '", folder, "' is given, but arrays feed all inputs already"));
  }
  return first_error;
}

absl::Status Dataset::Data::AddFolder(const DatasetOptions& options) {
  folder = options.folder;
  if (!IsFolder(folder)) {
    return absl::NotFoundError(
        absl::StrCat("Calibration folder '", folder, "' is ",
                     Exists(folder) ? "a file; give a folder, or NAME=FILE.npy"
                                    : "not there"));
  }
  OPTFARM_RETURN_IF_ERROR(FindFiles(folder, "", 0, &files));
  if (files.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Calibration folder '", folder,
        "' has no .jpg, .jpeg, .png or .wav files; an array is given as "
        "NAME=FILE.npy"));
  }
  const auto sounds = std::count_if(files.begin(), files.end(), IsSound);
  if (sounds > 0 && sounds < static_cast<int64_t>(files.size())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Calibration folder '", folder, "' mixes ", sounds, " sounds with ",
        files.size() - sounds, " pictures; give one kind"));
  }
  OPTFARM_RETURN_IF_ERROR(sounds > 0 ? AssignSounds()
                                     : AssignPictures(options));
  const auto count = static_cast<int64_t>(files.size());
  if (size > 0 && size != count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Folder '", folder, "' holds ", count, " samples, the arrays ", size));
  }
  size = count;
  return absl::OkStatus();
}

absl::Status Dataset::Data::CheckAllFed() const {
  for (const InputSource& source : sources) {
    if (source.source != Source::kNone) continue;
    const std::string name = graph::ToString(source.input.name);
    return absl::InvalidArgumentError(
        absl::StrCat("Input '", name, "' has no data; give ", name,
                     "=FILE.npy as calibration data too"));
  }
  return absl::OkStatus();
}

Dataset::Dataset(std::unique_ptr<Data> data) : data_(std::move(data)) {}
Dataset::Dataset(Dataset&&) noexcept = default;
Dataset& Dataset::operator=(Dataset&&) noexcept = default;
Dataset::~Dataset() = default;

absl::StatusOr<Dataset> Dataset::Open(const DatasetOptions& options,
                                      absl::Span<const ModelTensor> inputs) {
  auto data = std::make_unique<Data>();
  for (const ModelTensor& input : inputs) {
    data->sources.emplace_back().input = input;
  }
  OPTFARM_RETURN_IF_ERROR(data->AddArrays(options));
  if (!options.folder.empty()) {
    OPTFARM_RETURN_IF_ERROR(data->AddFolder(options));
  }
  OPTFARM_RETURN_IF_ERROR(data->CheckAllFed());
  // Nothing but values that are the same every time: one sample.
  data->size = std::max<int64_t>(data->size, 1);
  return Dataset(std::move(data));
}

absl::StatusOr<Dataset> Dataset::MakeRandom(
    absl::Span<const ModelTensor> inputs, int64_t samples, uint64_t seed) {
  auto data = std::make_unique<Data>();
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
  const bool has_sounds = !data_->files.empty() && IsSound(data_->files[index]);
  const std::string path =
      data_->files.empty() ? "" : JoinPath(data_->folder, data_->files[index]);
  std::string sound;
  if (has_sounds) {
    OPTFARM_ASSIGN_OR_RETURN(sound, ReadFile(path, kMaxWavBytes));
  }
  std::vector<Tensor> values;
  uint64_t input_number = 0;
  for (const InputSource& source : data_->sources) {
    ++input_number;
    absl::StatusOr<Tensor> value = Tensor();
    switch (source.source) {
      case Source::kArray:
        value = source.array.Sample(index);
        break;
      case Source::kPicture:
        value = ReadPicture(path, source.picture);
        break;
      case Source::kRandom:
        value =
            RandomValue(source.input, data_->seed * 1000003 +
                                          static_cast<uint64_t>(index) * 1009 +
                                          input_number);
        break;
      default:
        value = SoundValue(source, sound);
        if (!value.ok()) {
          value = Annotate(value.status(),
                           absl::StrCat("While reading '", path, "'"));
        }
    }
    if (!value.ok()) return value.status();
    values.push_back(*std::move(value));
  }
  return values;
}

std::string Dataset::SampleName(int64_t index) const {
  return data_->files.empty() ? absl::StrCat("sample ", index)
                              : data_->files[index];
}

std::string Dataset::SubfolderOf(int64_t index) const {
  if (data_->files.empty()) return "";
  const std::string& path = data_->files[index];
  const size_t slash = path.find('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::vector<int64_t> Dataset::Choose(int64_t most, uint64_t seed) const {
  std::vector<int64_t> chosen(data_->size);
  for (int64_t i = 0; i < data_->size; ++i) chosen[i] = i;
  if (most <= 0 || most >= data_->size) return chosen;
  std::mt19937_64 random(seed);
  for (int64_t i = 0; i < most; ++i) {
    std::swap(chosen[i],
              chosen[i + static_cast<int64_t>(random() % (data_->size - i))]);
  }
  chosen.resize(most);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

const std::vector<std::string>& Dataset::fed() const { return data_->fed; }
const std::vector<std::string>& Dataset::warnings() const {
  return data_->warnings;
}
bool Dataset::is_random() const { return data_->is_random; }

}  // namespace optfarm::optimize
