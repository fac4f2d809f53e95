#include <csetjmp>
#include <cstdio>
#include <cstdlib>

// jpeglib.h does not include what it needs.
#include <jpeglib.h>

#include "absl/strings/str_cat.h"
#include "engine/runtime/reference/images/picture_encoders.h"

namespace optfarm::runtime {
namespace {

// A name that introduces XMP in a JPEG's application segment 1.
constexpr char kXmpName[] = "http://ns.adobe.com/xap/1.0/";
// A segment's length has 16 bits.
constexpr size_t kMaxSegment = 65533;

struct Errors {
  jpeg_error_mgr base;
  jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = {};
};

void OnError(j_common_ptr info) {
  auto* errors = reinterpret_cast<Errors*>(info->err);
  info->err->format_message(info, errors->message);
  std::longjmp(errors->jump, 1);
}

void OnMessage(j_common_ptr) {}

void SetParameters(jpeg_compress_struct* jpeg, const Pixels& pixels,
                   const JpegEncoding& encoding) {
  jpeg->image_width = static_cast<JDIMENSION>(pixels.width);
  jpeg->image_height = static_cast<JDIMENSION>(pixels.height);
  jpeg->input_components = pixels.channels;
  jpeg->in_color_space = pixels.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(jpeg);
  jpeg_set_quality(jpeg, encoding.quality, TRUE);
  if (encoding.is_progressive) jpeg_simple_progression(jpeg);
  jpeg->optimize_coding = encoding.optimizes_size ? TRUE : FALSE;
  if (!encoding.halves_chroma) {
    jpeg->comp_info[0].h_samp_factor = 1;
    jpeg->comp_info[0].v_samp_factor = 1;
  }
  jpeg->density_unit = encoding.density_is_per_cm ? 2 : 1;
  jpeg->X_density = static_cast<UINT16>(encoding.x_density);
  jpeg->Y_density = static_cast<UINT16>(encoding.y_density);
}

// No object with a destructor may live in this frame: longjmp skips them.
bool Encode(jpeg_compress_struct* jpeg, Errors* errors, const Pixels& pixels,
            const JpegEncoding& encoding, const std::string& xmp,
            unsigned char** bytes, unsigned long* size) {
  if (setjmp(errors->jump) != 0) return false;
  jpeg_create_compress(jpeg);
  jpeg_mem_dest(jpeg, bytes, size);
  SetParameters(jpeg, pixels, encoding);
  jpeg_start_compress(jpeg, TRUE);
  if (!xmp.empty()) {
    jpeg_write_marker(jpeg, JPEG_APP0 + 1,
                      reinterpret_cast<const JOCTET*>(xmp.data()),
                      static_cast<unsigned int>(xmp.size()));
  }
  const int64_t row = pixels.width * pixels.channels;
  while (jpeg->next_scanline < jpeg->image_height) {
    // libjpeg does not write to what it is given.
    auto* line = const_cast<JSAMPROW>(pixels.bytes + jpeg->next_scanline * row);
    jpeg_write_scanlines(jpeg, &line, 1);
  }
  jpeg_finish_compress(jpeg);
  return true;
}

}  // namespace

absl::StatusOr<std::string> EncodeJpeg(const Pixels& pixels,
                                       const JpegEncoding& encoding) {
  std::string xmp;
  if (!encoding.xmp_metadata.empty()) {
    xmp.assign(kXmpName, sizeof(kXmpName));
    xmp += encoding.xmp_metadata;
  }
  if (xmp.size() > kMaxSegment) {
    return absl::InvalidArgumentError(
        absl::StrCat("xmp_metadata of ", encoding.xmp_metadata.size(),
                     " bytes does not fit into a JPEG's segment"));
  }
  jpeg_compress_struct jpeg = {};
  Errors errors;
  jpeg.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = OnError;
  errors.base.output_message = OnMessage;
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const bool ok = Encode(&jpeg, &errors, pixels, encoding, xmp, &bytes, &size);
  std::string file;
  if (ok) file.assign(reinterpret_cast<const char*>(bytes), size);
  jpeg_destroy_compress(&jpeg);
  std::free(bytes);
  if (ok) return file;
  return absl::InvalidArgumentError(
      absl::StrCat("cannot be written as a JPEG: ", errors.message));
}

}  // namespace optfarm::runtime
