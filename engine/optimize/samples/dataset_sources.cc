#include "engine/optimize/samples/dataset_sources.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/files.h"
#include "base/status_macros.h"

namespace optfarm::optimize {
namespace {

bool IsScalarInt(const ModelTensor& input) {
  return input.dtype == tensorflow::DT_INT32 &&
         (!input.shape.has_value() || input.shape->empty());
}

absl::Status CheckScale(const v1::DataSource& source) {
  const bool good =
      std::isfinite(source.mean()) &&
      (!source.has_std() || (std::isfinite(source.std()) && source.std() != 0));
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "Values cannot be fed as (value - ", source.mean(), ") / ", source.std(),
      "; give a finite mean and a std other than 0"));
}

std::string ScaleWarning(const ModelTensor& input) {
  return absl::StrCat(
      "Pictures were fed to '", graph::ToString(input.name),
      "' as 0..255, because neither the recipe nor --input_mean and "
      "--input_std say otherwise; most models want another scale.");
}

}  // namespace

std::vector<InputSource*> DatasetSources::Unfed() {
  std::vector<InputSource*> unfed;
  for (InputSource& source : sources) {
    if (source.source == Source::kNone) unfed.push_back(&source);
  }
  return unfed;
}

std::string DatasetSources::Names() const {
  return absl::StrJoin(sources, ", ", [](std::string* out, const auto& s) {
    absl::StrAppend(out, "'", graph::ToString(s.input.name), "'");
  });
}

absl::Status DatasetSources::SetSize(absl::string_view what, int64_t samples) {
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

absl::Status DatasetSources::AddSources(const LocalData& data) {
  const int samples = data.Find(v1::DataSource::SAMPLES);
  if (samples >= 0) folder = data.folders[samples];
  for (int i = 0; i < data.dataset.sources_size(); ++i) {
    OPTFARM_RETURN_IF_ERROR(CheckScale(data.dataset.sources(i)));
    if (data.dataset.sources(i).role() == v1::DataSource::INPUT) {
      OPTFARM_RETURN_IF_ERROR(AddInput(data, i));
    }
  }
  return samples >= 0 ? AddSamples(data, samples) : absl::OkStatus();
}

absl::Status DatasetSources::AddInput(const LocalData& data, int number) {
  const v1::DataSource& source = data.dataset.sources(number);
  const std::string path = data.PathOf(number);
  const std::string& name = source.input();
  InputSource* target = nullptr;
  if (name.empty() && sources.size() == 1) target = &sources[0];
  absl::StatusOr<graph::TensorName> wanted = graph::ParseTensorName(name);
  for (InputSource& known : sources) {
    if (wanted.ok() && known.input.name == *wanted) target = &known;
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
  return IsRecordsName(path) ? AddRecordFile(source, path, target)
                             : AddArray(source, path, target);
}

absl::Status DatasetSources::AddArray(const v1::DataSource& source,
                                      const std::string& path,
                                      InputSource* target) {
  OPTFARM_ASSIGN_OR_RETURN(
      target->array, LoadArrayInput(path, source, target->input,
                                    NormalizationOf(preprocessing, source)));
  target->source = Source::kArray;
  fed.push_back(absl::StrCat(
      graph::ToString(target->input.name), ": ", target->array.description,
      target->array.constant ? ", the same for every sample"
                             : ", one sample a slice"));
  if (target->array.constant) return absl::OkStatus();
  // They may be meant for pictures that are given too.
  const bool has_scale = source.has_mean() || source.has_std();
  if (has_scale && !target->array.is_scaled && folder.empty()) {
    warnings.push_back(absl::StrCat(
        "--input_mean and --input_std were not applied to '", path,
        "', because it does not hold bytes; scale the array, or leave them "
        "out."));
  }
  return SetSize(path, target->array.samples());
}

absl::Status DatasetSources::AddRecordFile(const v1::DataSource& source,
                                           const std::string& path,
                                           InputSource* target) {
  if (source.layout() != v1::DataSource::LAYOUT_UNSPECIFIED) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' is a record file and has layout ",
                     v1::DataSource::Layout_Name(source.layout()),
                     ", which only arrays have; leave the layout out"));
  }
  OPTFARM_ASSIGN_OR_RETURN(ExampleRecords opened, ExampleRecords::Open({path}));
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::Example first, opened.Read(0));
  auto plan = PlanRecordInput(source, preprocessing, target->input, first);
  if (!plan.ok()) {
    return Annotate(plan.status(), absl::StrCat("'", path, "'"));
  }
  OPTFARM_RETURN_IF_ERROR(SetSize(path, opened.size()));
  target->source = Source::kRecord;
  target->records = records.size();
  target->record = *std::move(plan);
  fed.push_back(absl::StrCat(graph::ToString(target->input.name), ": from '",
                             BaseName(path), "', ", opened.size(), " records, ",
                             target->record.description));
  if (target->record.is_picture && target->record.picture.scale_unknown) {
    warnings.push_back(ScaleWarning(target->input));
  }
  records.push_back(std::move(opened));
  return absl::OkStatus();
}

absl::Status DatasetSources::AddRecordFolder(
    const v1::DataSource& source, const std::vector<std::string>& paths) {
  std::vector<std::string> full;
  for (const std::string& path : paths) full.push_back(JoinPath(folder, path));
  OPTFARM_ASSIGN_OR_RETURN(ExampleRecords opened, ExampleRecords::Open(full));
  OPTFARM_ASSIGN_OR_RETURN(const tensorflow::Example first, opened.Read(0));
  for (InputSource* unfed : Unfed()) {
    auto plan = PlanRecordInput(source, preprocessing, unfed->input, first);
    if (!plan.ok()) {
      return Annotate(plan.status(), absl::StrCat("Folder '", folder, "'"));
    }
    unfed->source = Source::kRecord;
    unfed->records = records.size();
    unfed->record = *std::move(plan);
    fed.push_back(absl::StrCat(graph::ToString(unfed->input.name), ": ",
                               opened.size(), " records of ", paths.size(),
                               paths.size() == 1 ? " file, " : " files, ",
                               unfed->record.description));
    if (unfed->record.is_picture && unfed->record.picture.scale_unknown) {
      warnings.push_back(ScaleWarning(unfed->input));
    }
  }
  const int64_t count = opened.size();
  records.push_back(std::move(opened));
  return SetSize(folder, count);
}

absl::Status DatasetSources::AssignSounds() {
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

absl::Status DatasetSources::AssignPictures(const v1::DataSource& source) {
  const Normalization normalization = NormalizationOf(preprocessing, source);
  absl::Status first_error;
  for (InputSource* unfed : Unfed()) {
    absl::StatusOr<PictureInput> plan =
        PlanPictureInput(unfed->input, preprocessing, normalization);
    if (!plan.ok()) {
      if (first_error.ok()) first_error = plan.status();
      continue;
    }
    unfed->picture = *std::move(plan);
    unfed->source = Source::kPicture;
    fed.push_back(absl::StrCat(graph::ToString(unfed->input.name), ": ",
                               files.paths.size(), " pictures, ",
                               unfed->picture.Describe()));
    if (unfed->picture.scale_unknown) {
      warnings.push_back(ScaleWarning(unfed->input));
    }
    return absl::OkStatus();
  }
  if (first_error.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Folder '", folder, "' is given, but arrays feed all inputs already"));
  }
  return first_error;
}

absl::Status DatasetSources::AddSamples(const LocalData& data, int number) {
  const v1::DataSource& source = data.dataset.sources(number);
  std::vector<std::string> paths;
  for (const v1::DataFile& file : source.files()) paths.push_back(file.path());
  OPTFARM_ASSIGN_OR_RETURN(SampleFiles found,
                           SelectSampleFiles(std::move(paths)));
  if (found.kind == SampleKind::kRecords) {
    return AddRecordFolder(source, found.paths);
  }
  files = std::move(found);
  OPTFARM_RETURN_IF_ERROR(files.kind == SampleKind::kSound
                              ? AssignSounds()
                              : AssignPictures(source));
  return SetSize(folder, static_cast<int64_t>(files.paths.size()));
}

absl::Status DatasetSources::CheckAllFed() const {
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
