#include "engine/optimize/samples/dataset_sources.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status_macros.h"

namespace optfarm::optimize {
namespace {

std::vector<double> OrDefault(const google::protobuf::RepeatedField<double>& f,
                              std::optional<double> otherwise, double silent) {
  if (f.empty()) return {otherwise.value_or(silent)};
  return {f.begin(), f.end()};
}

bool IsScalarInt(const ModelTensor& input) {
  return input.dtype == tensorflow::DT_INT32 &&
         (!input.shape.has_value() || input.shape->empty());
}

RecordRequest RequestFor(const DatasetOptions& options,
                         const std::string& feature) {
  return {feature, options.preprocessing, options.input_mean,
          options.input_std};
}

std::string ScaleWarning(const ModelTensor& input) {
  return absl::StrCat(
      "Pictures were fed to '", graph::ToString(input.name),
      "' as 0..255, because neither the recipe nor --input_mean and "
      "--input_std say otherwise; most models want another scale.");
}

}  // namespace

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

absl::Status Dataset::Data::SetSize(absl::string_view what, int64_t samples) {
  if (samples == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", what, "' holds no samples"));
  }
  if (size > 0 && samples != size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", what, "' holds ", samples, " samples, other data ", size));
  }
  size = samples;
  return absl::OkStatus();
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
    const FileMember file = SplitMember(path);
    OPTFARM_RETURN_IF_ERROR(IsRecordsName(file.file)
                                ? AddRecordFile(options, file, target)
                                : AddArray(options, path, target));
  }
  return absl::OkStatus();
}

absl::Status Dataset::Data::AddArray(const DatasetOptions& options,
                                     const std::string& path,
                                     InputSource* target) {
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
  if (target->array.constant) return absl::OkStatus();
  // They may be meant for pictures that are given too.
  const bool has_scale =
      options.input_mean.has_value() || options.input_std.has_value();
  if (has_scale && !target->array.is_scaled && options.folder.empty()) {
    warnings.push_back(absl::StrCat(
        "--input_mean and --input_std were not applied to '", path,
        "', because it does not hold bytes; scale the array, or leave them "
        "out."));
  }
  return SetSize(path, target->array.samples());
}

absl::Status Dataset::Data::AddRecordFile(const DatasetOptions& options,
                                          const FileMember& file,
                                          InputSource* target) {
  OPTFARM_ASSIGN_OR_RETURN(ExampleRecords opened,
                           ExampleRecords::Open({file.file}));
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::Example first, opened.Read(0));
  auto plan =
      PlanRecordInput(RequestFor(options, file.member), target->input, first);
  if (!plan.ok()) {
    return Annotate(plan.status(), absl::StrCat("'", file.file, "'"));
  }
  OPTFARM_RETURN_IF_ERROR(SetSize(file.file, opened.size()));
  target->source = Source::kRecord;
  target->records = records.size();
  target->record = *std::move(plan);
  fed.push_back(absl::StrCat(graph::ToString(target->input.name), ": from '",
                             BaseName(file.file), "', ", opened.size(),
                             " records, ", target->record.description));
  if (target->record.is_picture && target->record.picture.scale_unknown) {
    warnings.push_back(ScaleWarning(target->input));
  }
  records.push_back(std::move(opened));
  return absl::OkStatus();
}

absl::Status Dataset::Data::AddRecordFolder(
    const DatasetOptions& options, const std::vector<std::string>& paths) {
  std::vector<std::string> full;
  for (const std::string& path : paths) full.push_back(JoinPath(folder, path));
  OPTFARM_ASSIGN_OR_RETURN(ExampleRecords opened, ExampleRecords::Open(full));
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::Example first, opened.Read(0));
  for (InputSource* source : Unfed()) {
    auto plan = PlanRecordInput(RequestFor(options, ""), source->input, first);
    if (!plan.ok()) {
      return Annotate(plan.status(), absl::StrCat("Folder '", folder, "'"));
    }
    source->source = Source::kRecord;
    source->records = records.size();
    source->record = *std::move(plan);
    fed.push_back(absl::StrCat(graph::ToString(source->input.name), ": ",
                               opened.size(), " records of ", paths.size(),
                               paths.size() == 1 ? " file, " : " files, ",
                               source->record.description));
    if (source->record.is_picture && source->record.picture.scale_unknown) {
      warnings.push_back(ScaleWarning(source->input));
    }
  }
  const int64_t count = opened.size();
  records.push_back(std::move(opened));
  return SetSize(folder, count);
}

absl::Status Dataset::Data::AssignSounds() {
  std::vector<InputSource*> unfed = Unfed();
  const auto feed = [](InputSource* source, SoundPart part) {
    source->source = Source::kSound;
    source->sound_part = part;
  };
  for (InputSource* source : unfed) {
    if (source->input.dtype != tensorflow::DT_STRING) continue;
    feed(source, SoundPart::kFile);
    fed.push_back(absl::StrCat(graph::ToString(source->input.name), ": ",
                               files.paths.size(), " WAV files as they are"));
    return absl::OkStatus();
  }
  bool found = false;
  for (InputSource* source : unfed) {
    if (source->input.dtype == tensorflow::DT_FLOAT && !found) {
      found = true;
      feed(source, SoundPart::kSamples);
      fed.push_back(absl::StrCat(graph::ToString(source->input.name), ": ",
                                 "samples of ", files.paths.size(),
                                 " WAV files, -1..1"));
    } else if (IsScalarInt(source->input)) {
      feed(source, SoundPart::kRate);
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
                               files.paths.size(), " pictures, ",
                               source->picture.Describe()));
    if (source->picture.scale_unknown) {
      warnings.push_back(ScaleWarning(source->input));
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
  OPTFARM_ASSIGN_OR_RETURN(SampleFiles found, FindSampleFiles(folder));
  if (found.kind == SampleKind::kRecords) {
    return AddRecordFolder(options, found.paths);
  }
  files = std::move(found);
  OPTFARM_RETURN_IF_ERROR(files.kind == SampleKind::kSound
                              ? AssignSounds()
                              : AssignPictures(options));
  return SetSize(folder, static_cast<int64_t>(files.paths.size()));
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

}  // namespace optfarm::optimize
