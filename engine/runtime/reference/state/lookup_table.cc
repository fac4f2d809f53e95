// Hash tables from keys to values: HashTable, which is filled once, and
// MutableHashTable. Keys and values are kept as their bytes.

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/status_macros.h"
#include "engine/graph/attr.h"
#include "engine/runtime/reference/arguments.h"
#include "engine/runtime/reference/families.h"
#include "engine/runtime/reference/state/handles.h"

namespace optfarm::runtime {
namespace {

// Element i as bytes.
std::string BytesOf(const Tensor& tensor, int64_t i) {
  if (tensor.dtype() == tensorflow::DT_STRING) {
    return tensor.data<std::string>()[i];
  }
  const size_t size = ElementSize(tensor.dtype());
  return std::string(static_cast<const char*>(tensor.raw()) + i * size, size);
}

// REQUIRES: bytes came from BytesOf() of the same dtype.
void SetBytes(const std::string& bytes, int64_t i, Tensor* tensor) {
  if (tensor->dtype() == tensorflow::DT_STRING) {
    tensor->data<std::string>()[i] = bytes;
    return;
  }
  const size_t size = ElementSize(tensor->dtype());
  std::memcpy(static_cast<char*>(tensor->raw()) + i * size, bytes.data(), size);
}

class LookupTable final : public Resource {
 public:
  LookupTable(DataType keys, DataType values, bool is_mutable)
      : key_dtype_(keys), value_dtype_(values), is_mutable_(is_mutable) {}
  absl::string_view kind() const override { return "lookup table"; }

  bool IsLike(DataType keys, DataType values, bool is_mutable) const {
    return keys == key_dtype_ && values == value_dtype_ &&
           is_mutable == is_mutable_;
  }

  absl::StatusOr<Tensor> Find(const Tensor& keys,
                              const Tensor& default_value) const;
  // Adds entries. `replaces_all` forgets the others first.
  absl::Status Insert(const Tensor& keys, const Tensor& values,
                      bool replaces_all);
  // Fills a table once; filling it again changes nothing.
  absl::Status Initialize(const Tensor& keys, const Tensor& values);
  absl::StatusOr<int64_t> size() const;
  // Keys and values as vectors, sorted by the bytes of the keys.
  absl::StatusOr<std::pair<Tensor, Tensor>> Export() const;

 private:
  absl::Status CheckEntries(const Tensor& keys, const Tensor& values) const;
  absl::Status CheckFilled() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const DataType key_dtype_;
  const DataType value_dtype_;
  const bool is_mutable_;
  mutable absl::Mutex mutex_;
  bool is_filled_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, std::string> entries_ ABSL_GUARDED_BY(mutex_);
};

absl::Status LookupTable::CheckFilled() const {
  if (is_mutable_ || is_filled_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the table is empty: run its initializer (InitializeTable) in a session "
      "that shares the container");
}

absl::Status LookupTable::CheckEntries(const Tensor& keys,
                                       const Tensor& values) const {
  OPTFARM_RETURN_IF_ERROR(RequireDtype(keys, "keys", key_dtype_));
  OPTFARM_RETURN_IF_ERROR(RequireDtype(values, "values", value_dtype_));
  return RequireShape(values, "values", keys.shape());
}

absl::StatusOr<Tensor> LookupTable::Find(const Tensor& keys,
                                         const Tensor& default_value) const {
  OPTFARM_RETURN_IF_ERROR(RequireDtype(keys, "keys", key_dtype_));
  OPTFARM_RETURN_IF_ERROR(
      RequireDtype(default_value, "default_value", value_dtype_));
  OPTFARM_RETURN_IF_ERROR(RequireOneElement(default_value, "default_value"));
  OPTFARM_ASSIGN_OR_RETURN(Tensor out,
                           Tensor::Allocate(value_dtype_, keys.shape()));
  const std::string otherwise = BytesOf(default_value, 0);
  absl::MutexLock lock(&mutex_);
  OPTFARM_RETURN_IF_ERROR(CheckFilled());
  for (int64_t i = 0; i < keys.num_elements(); ++i) {
    const auto it = entries_.find(BytesOf(keys, i));
    SetBytes(it == entries_.end() ? otherwise : it->second, i, &out);
  }
  return out;
}

absl::Status LookupTable::Insert(const Tensor& keys, const Tensor& values,
                                 bool replaces_all) {
  if (!is_mutable_) {
    return absl::InvalidArgumentError(
        "a HashTable cannot be changed once it is initialized");
  }
  OPTFARM_RETURN_IF_ERROR(CheckEntries(keys, values));
  absl::MutexLock lock(&mutex_);
  if (replaces_all) entries_.clear();
  for (int64_t i = 0; i < keys.num_elements(); ++i) {
    entries_[BytesOf(keys, i)] = BytesOf(values, i);
  }
  return absl::OkStatus();
}

absl::Status LookupTable::Initialize(const Tensor& keys, const Tensor& values) {
  OPTFARM_RETURN_IF_ERROR(CheckEntries(keys, values));
  std::map<std::string, std::string> entries;
  for (int64_t i = 0; i < keys.num_elements(); ++i) {
    const std::string value = BytesOf(values, i);
    const auto [it, added] = entries.emplace(BytesOf(keys, i), value);
    if (!added && it->second != value) {
      return absl::InvalidArgumentError(absl::StrCat(
          "key number ", i, " is there twice with different values"));
    }
  }
  absl::MutexLock lock(&mutex_);
  if (is_filled_) return absl::OkStatus();
  is_filled_ = true;
  entries_ = std::move(entries);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> LookupTable::size() const {
  absl::MutexLock lock(&mutex_);
  OPTFARM_RETURN_IF_ERROR(CheckFilled());
  return static_cast<int64_t>(entries_.size());
}

absl::StatusOr<std::pair<Tensor, Tensor>> LookupTable::Export() const {
  absl::MutexLock lock(&mutex_);
  OPTFARM_RETURN_IF_ERROR(CheckFilled());
  const Shape shape = {static_cast<int64_t>(entries_.size())};
  OPTFARM_ASSIGN_OR_RETURN(Tensor keys, Tensor::Allocate(key_dtype_, shape));
  OPTFARM_ASSIGN_OR_RETURN(Tensor values,
                           Tensor::Allocate(value_dtype_, shape));
  int64_t i = 0;
  for (const auto& [key, value] : entries_) {
    SetBytes(key, i, &keys);
    SetBytes(value, i++, &values);
  }
  return std::pair(std::move(keys), std::move(values));
}

absl::StatusOr<LookupTable*> TableOf(const KernelContext& context) {
  return ResourceOf<LookupTable>(context, 0, "lookup table");
}

template <bool kIsMutable>
absl::StatusOr<std::unique_ptr<Kernel>> MakeTable(
    const tensorflow::NodeDef& node) {
  OPTFARM_ASSIGN_OR_RETURN(const DataType keys,
                           graph::GetType(node, "key_dtype"));
  OPTFARM_ASSIGN_OR_RETURN(const DataType values,
                           graph::GetType(node, "value_dtype"));
  for (DataType dtype : {keys, values}) {
    if (dtype != tensorflow::DT_STRING && ElementSize(dtype) == 0) {
      return UnsupportedDtype("table", dtype);
    }
  }
  OPTFARM_ASSIGN_OR_RETURN(const std::string name, ResourceName(node));
  return MakeKernel([=](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 1));
    if (context->resources() == nullptr) {
      return absl::FailedPreconditionError("there is no place for tables");
    }
    auto resource = context->resources()->GetOrMake(name, [&] {
      return std::make_shared<LookupTable>(keys, values, kIsMutable);
    });
    const auto* table = dynamic_cast<const LookupTable*>(resource.get());
    if (table == nullptr || !table->IsLike(keys, values, kIsMutable)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", name, "' is already the name of another ", resource->kind()));
    }
    context->SetOutput(0, MakeHandle(std::move(resource)));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeFind(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    OPTFARM_ASSIGN_OR_RETURN(LookupTable * table, TableOf(*context));
    OPTFARM_ASSIGN_OR_RETURN(Tensor values,
                             table->Find(context->input(1), context->input(2)));
    context->SetOutput(0, std::move(values));
    return absl::OkStatus();
  });
}

template <bool kReplacesAll>
absl::StatusOr<std::unique_ptr<Kernel>> MakeInsert(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    OPTFARM_ASSIGN_OR_RETURN(LookupTable * table, TableOf(*context));
    return table->Insert(context->input(1), context->input(2), kReplacesAll);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeInitialize(
    const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireInputs(*context, 3));
    OPTFARM_ASSIGN_OR_RETURN(LookupTable * table, TableOf(*context));
    return table->Initialize(context->input(1), context->input(2));
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeSize(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_ASSIGN_OR_RETURN(LookupTable * table, TableOf(*context));
    OPTFARM_ASSIGN_OR_RETURN(const int64_t size, table->size());
    context->SetOutput(0, Tensor::Scalar<int64_t>(size));
    return absl::OkStatus();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> MakeExport(const tensorflow::NodeDef&) {
  return MakeKernel([](KernelContext* context) -> absl::Status {
    OPTFARM_RETURN_IF_ERROR(RequireOutputs(*context, 2));
    OPTFARM_ASSIGN_OR_RETURN(LookupTable * table, TableOf(*context));
    OPTFARM_ASSIGN_OR_RETURN(auto entries, table->Export());
    context->SetOutput(0, std::move(entries.first));
    context->SetOutput(1, std::move(entries.second));
    return absl::OkStatus();
  });
}

// A model does not choose which files are read.
absl::StatusOr<std::unique_ptr<Kernel>> MakeFromFile(
    const tensorflow::NodeDef&) {
  return absl::UnimplementedError(
      "the runtime reads no files that a model names; fill the table with "
      "InitializeTable from constants instead");
}

}  // namespace

void AddLookupTableKernels(KernelCatalog* catalog) {
  catalog->Add("HashTable", MakeTable<false>, /*is_pure=*/false);
  catalog->Add("HashTableV2", MakeTable<false>, /*is_pure=*/false);
  catalog->Add("MutableHashTable", MakeTable<true>, /*is_pure=*/false);
  catalog->Add("MutableHashTableV2", MakeTable<true>, /*is_pure=*/false);
  catalog->Add("LookupTableFind", MakeFind, /*is_pure=*/false);
  catalog->Add("LookupTableFindV2", MakeFind, /*is_pure=*/false);
  catalog->Add("LookupTableInsert", MakeInsert<false>, /*is_pure=*/false);
  catalog->Add("LookupTableInsertV2", MakeInsert<false>, /*is_pure=*/false);
  catalog->Add("LookupTableImport", MakeInsert<true>, /*is_pure=*/false);
  catalog->Add("LookupTableImportV2", MakeInsert<true>, /*is_pure=*/false);
  catalog->Add("LookupTableSize", MakeSize, /*is_pure=*/false);
  catalog->Add("LookupTableSizeV2", MakeSize, /*is_pure=*/false);
  catalog->Add("LookupTableExport", MakeExport, /*is_pure=*/false);
  catalog->Add("LookupTableExportV2", MakeExport, /*is_pure=*/false);
  catalog->Add("InitializeTable", MakeInitialize, /*is_pure=*/false);
  catalog->Add("InitializeTableV2", MakeInitialize, /*is_pure=*/false);
  catalog->Add("InitializeTableFromTextFile", MakeFromFile, /*is_pure=*/false);
  catalog->Add("InitializeTableFromTextFileV2", MakeFromFile,
               /*is_pure=*/false);
}

}  // namespace optfarm::runtime
