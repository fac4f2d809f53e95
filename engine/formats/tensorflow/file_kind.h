// Tells by a file's bytes what it is, so that a wrong file gets an answer its
// sender can act on instead of "parse error".

#ifndef OPTFARM_ENGINE_FORMATS_TENSORFLOW_FILE_KIND_H_
#define OPTFARM_ENGINE_FORMATS_TENSORFLOW_FILE_KIND_H_

#include <string>

#include "absl/strings/string_view.h"

namespace optfarm::formats {

enum class FileKind {
  // None of the below; a binary GraphDef has no mark of its own.
  kUnknown,
  kEmpty,
  // Readable text of any sort.
  kText,
  kGzip,
  kZip,
  kTar,
  kHdf5,
  // Models of other frameworks: what torch.save, Keras 3, safetensors and Core
  // ML write.
  kPyTorch,
  kKeras,
  kSafetensors,
  kCoreMl,
  kTfLite,
  // A sorted table: a V1 checkpoint, or the .index file of a V2 one.
  kCheckpoint,
  kMemoryMappedGraph,
  kEncryptedModel,
  kSavedModel,
  kMetaGraph,
  kOnnx,
  kGitLfsPointer,
  kJson,
  kHtml,
  kJpeg,
  kPng,
  // GIF, BMP or WebP.
  kOtherPicture,
  kNpy,
  kRiff,
};

// Looks at marks and at the outermost fields only; never fails, and takes no
// memory in proportion to what the bytes claim.
FileKind IdentifyBytes(absl::string_view bytes);

// What a file of this kind is and what to do when it was given as a graph:
// "is a SavedModel; freeze it first (...)". Empty for what is a graph:
// kUnknown, kText, kMemoryMappedGraph.
std::string AdviceForGraph(FileKind kind);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TENSORFLOW_FILE_KIND_H_
