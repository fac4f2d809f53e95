#include "engine/runtime/core/packed_weights.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/status_macros.h"
#include "engine/runtime/core/memory_budget.h"
#include "engine/runtime/core/memory_scope.h"
#include "engine/runtime/core/run_bounds.h"

namespace optfarm::runtime {
namespace {

// Lets pages of weights go whose content is not needed any more, or can be read
// from their file again.
class PageDropper {
 public:
  // `file`: the mapped file that the weights lie in; empty for none. `is_ours`:
  // nobody else reads them.
  PageDropper(absl::string_view file, bool is_ours, const Tensor& weights)
      : is_on_((!file.empty() || is_ours) &&
               weights.TotalBytes() >= kLeastBytes),
        begin_(AddressOf(weights.raw())) {
    const uintptr_t end = begin_ + static_cast<uintptr_t>(weights.TotalBytes());
    dropped_ = RoundUp(begin_, PageBytes());
    last_ = RoundDown(end, PageBytes());
    if (file.empty()) return;
    // The system brings in more pages than are asked for, and those of others
    // can be read again as well.
    const uintptr_t file_begin = AddressOf(file.data());
    dropped_ = std::max(RoundDown(begin_, kTogether), file_begin);
    last_ = std::min(RoundUp(end, kTogether), file_begin + file.size());
  }

  // Those that begin before the first `end` bytes of the weights do.
  void operator()(int64_t end) {
    DropTo(RoundDown(begin_ + static_cast<uintptr_t>(end), PageBytes()));
  }
  void DropAll() { DropTo(last_); }

 private:
  // UNITS: bytes. Below that it is not worth a call.
  static constexpr int64_t kLeastBytes = 64 * 1024;
  // UNITS: bytes of a file that come in together at most.
  static constexpr uintptr_t kTogether = uintptr_t{2} << 20;

  static uintptr_t AddressOf(const void* p) {
    return reinterpret_cast<uintptr_t>(p);
  }
  static uintptr_t PageBytes() {
    static const auto bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    return bytes;
  }
  static uintptr_t RoundDown(uintptr_t address, uintptr_t unit) {
    return address / unit * unit;
  }
  static uintptr_t RoundUp(uintptr_t address, uintptr_t unit) {
    return RoundDown(address + unit - 1, unit);
  }
  void DropTo(uintptr_t end) {
    if (!is_on_ || end <= dropped_) return;
#if defined(__linux__)
    // Only a hint: refused is as good as not asked.
    (void)madvise(reinterpret_cast<void*>(dropped_), end - dropped_,
                  MADV_DONTNEED);
#endif
    dropped_ = end;
  }

  const bool is_on_;
  const uintptr_t begin_;
  uintptr_t dropped_;
  uintptr_t last_;
};

// What is the model's is not the run's that happens to need it first.
class OutsideOfRuns {
 private:
  const MemoryScope no_places_{nullptr};
  const BudgetScope no_budget_{nullptr};
  const BoundsScope no_bounds_{nullptr};
};

}  // namespace

bool IsAligned(const Tensor& tensor) {
  constexpr uintptr_t kAlignment = 64;
  return ElementSize(tensor.dtype()) == 0 ||
         reinterpret_cast<uintptr_t>(tensor.raw()) % kAlignment == 0;
}

SharedWeights::SharedWeights(Tensor value, absl::string_view mapped_file)
    : dtype_(value.dtype()),
      shape_(value.shape()),
      mapped_file_(mapped_file),
      kept_(std::make_shared<const Tensor>(std::move(value))),
      last_(kept_) {}

absl::StatusOr<std::shared_ptr<const Tensor>> SharedWeights::Keep() {
  if (kept_ != nullptr) return kept_;
  if (std::shared_ptr<const Tensor> last = last_.lock()) return last;
  const OutsideOfRuns outside;
  for (const std::unique_ptr<Form>& form : forms_) {
    if (!form->is_ready.load(std::memory_order_relaxed)) continue;
    OPTFARM_ASSIGN_OR_RETURN(const Tensor value,
                             form->layout.unpack(form->packed));
    auto made = std::make_shared<const Tensor>(value.Reshaped(shape_));
    last_ = made;
    return made;
  }
  return absl::InternalError("weights are neither kept nor packed");
}

absl::StatusOr<std::shared_ptr<const Tensor>> SharedWeights::KeepAligned() {
  OPTFARM_ASSIGN_OR_RETURN(std::shared_ptr<const Tensor> value, Keep());
  if (IsAligned(*value)) return value;
  if (std::shared_ptr<const Tensor> last = last_.lock()) {
    if (IsAligned(*last)) return last;
  }
  const OutsideOfRuns outside;
  OPTFARM_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(dtype_, shape_));
  std::memcpy(copy.raw(), value->raw(),
              static_cast<size_t>(value->TotalBytes()));
  PageDropper(mapped_file_, false, *value).DropAll();
  auto made = std::make_shared<const Tensor>(std::move(copy));
  last_ = made;
  return made;
}

absl::StatusOr<Tensor> SharedWeights::Value() {
  absl::MutexLock lock(&mutex_);
  OPTFARM_ASSIGN_OR_RETURN(std::shared_ptr<const Tensor> value, KeepAligned());
  // Strings and handles are never packed.
  if (ElementSize(dtype_) == 0) return *value;
  // The view tells whether somebody still has it.
  const void* data = value->raw();
  return Tensor::View(dtype_, shape_, data, std::move(value));
}

SharedWeights::Form* SharedWeights::FindOrAdd(WeightLayout layout) {
  absl::MutexLock lock(&mutex_);
  for (const std::unique_ptr<Form>& form : forms_) {
    if (form->layout.name == layout.name) return form.get();
  }
  forms_.push_back(std::make_unique<Form>());
  forms_.back()->layout = std::move(layout);
  return forms_.back().get();
}

const Tensor* SharedWeights::Pack(Form* form, ThreadPool* pool) {
  absl::MutexLock lock(&mutex_);
  if (form->is_ready.load(std::memory_order_relaxed)) return &form->packed;
  const OutsideOfRuns outside;
  absl::StatusOr<std::shared_ptr<const Tensor>> value = Keep();
  if (!value.ok()) return nullptr;
  // What others have as well stays whole.
  const bool is_ours = value->use_count() == (kept_ != nullptr ? 2 : 1) &&
                       (*value)->IsSoleOwner();
  PageDropper drop(mapped_file_, is_ours, **value);
  absl::StatusOr<Tensor> packed =
      form->layout.pack(**value, pool, [&drop](int64_t end) { drop(end); });
  if (!packed.ok()) return nullptr;
  drop.DropAll();
  if (!is_mapped()) kept_.reset();
  form->packed = *std::move(packed);
  form->is_ready.store(true, std::memory_order_release);
  return &form->packed;
}

absl::StatusOr<Tensor> SharedWeights::PackAnew(const Form& form,
                                               ThreadPool* pool) {
  std::shared_ptr<const Tensor> value;
  {
    absl::MutexLock lock(&mutex_);
    value = kept_;
  }
  // UNITS: bytes that stay until all is packed: each piece costs a call.
  constexpr int64_t kAtOnce = 1 << 20;
  PageDropper drop(mapped_file_, false, *value);
  int64_t dropped = 0;
  const auto done = [&](int64_t end) {
    if (end - dropped < kAtOnce) return;
    drop(end);
    dropped = end;
  };
  OPTFARM_ASSIGN_OR_RETURN(Tensor packed, form.layout.pack(*value, pool, done));
  drop.DropAll();
  return packed;
}

void SharedWeights::Read(WeightVisitor read) {
  std::shared_ptr<const Tensor> value;
  {
    absl::MutexLock lock(&mutex_);
    value = kept_;
  }
  PageDropper drop(mapped_file_, false, *value);
  read(*value, [&drop](int64_t end) { drop(end); });
  drop.DropAll();
}

const Tensor* PackedWeights::Get(ThreadPool* pool, int64_t rows,
                                 Tensor* own) const {
  // Packing takes as long as some rows.
  constexpr int64_t kManyRows = 512;
  const bool is_streamed =
      *use_ == WeightUse::kStreamed ||
      (*use_ == WeightUse::kStreamedForMany && rows >= kManyRows);
  if (!is_streamed || form_->is_ready.load(std::memory_order_acquire)) {
    return Get(pool);
  }
  absl::StatusOr<Tensor> packed = weights_->PackAnew(*form_, pool);
  if (!packed.ok()) return nullptr;
  *own = *std::move(packed);
  return own;
}

bool PackedWeights::ReadInPlace(WeightVisitor read) const {
  if (*use_ != WeightUse::kInPlace ||
      form_->is_ready.load(std::memory_order_acquire)) {
    return false;
  }
  weights_->Read(read);
  return true;
}

PackedWeights::PackedWeights(Tensor packed)
    : weights_(std::make_shared<SharedWeights>(packed)),
      form_(weights_->FindOrAdd({"", packed.TotalBytes(), nullptr, nullptr})),
      use_(std::make_shared<WeightUse>(WeightUse::kPacked)) {
  form_->packed = std::move(packed);
  form_->is_ready.store(true, std::memory_order_release);
}

}  // namespace optfarm::runtime
