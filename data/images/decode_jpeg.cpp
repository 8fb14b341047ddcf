// JPEG by libjpeg-turbo. The library reports errors by longjmp, which must not skip a destructor:
// every library call is therefore made from a lambda without destructors, run by attempt().
#include <csetjmp>
#include <cstdint>
#include <cstdio>
// jpeglib.h needs FILE and size_t declared before it.
#include <jpeglib.h>
// Defines the message codes; must follow jpeglib.h.
#include <jerror.h>

#include <algorithm>
#include <array>

#include "data/images/decode.h"
#include "data/images/decoders.h"
#include "engine/base/error.h"
#include "engine/base/integers.h"
#include "engine/base/note.h"
#include "engine/system/read_file.h"

namespace rk {
namespace {

constexpr long kMaxMemory = 256L * 1024 * 1024;
constexpr int kMaxScans = 100;

// Whether the `count` unexpected bytes that the library found before `marker` are padding, which
// some cameras write after a scan: one or two bytes of any value, or zeros. Any other bytes, and
// any bytes before a restart marker, are picture data that could not be decoded.
bool is_padding(const jpeg_decompress_struct& info, int count, int marker) {
  if (marker >= JPEG_RST0 && marker <= JPEG_RST0 + 7) return false;
  if (count <= 2) return true;
  const JOCTET* end = info.src->next_input_byte;  // where the marker begins
  return std::all_of(end - count, end, [](JOCTET byte) { return byte == 0; });
}

// Whether the warning leaves the pixels unaffected: an unknown revision in the JFIF header, an
// unknown colour transform in the Adobe header, a damaged colour profile, a spectral range in the
// scan header of a baseline file (not used in baseline decoding), or padding.
bool harmless(const jpeg_decompress_struct& info) {
  switch (info.err->msg_code) {
    case JWRN_JFIF_MAJOR:
    case JWRN_ADOBE_XFORM:
    case JWRN_BOGUS_ICC:
    case JWRN_NOT_SEQUENTIAL: return true;
    case JWRN_EXTRANEOUS_DATA:
      return is_padding(info, info.err->msg_parm.i[0], info.err->msg_parm.i[1]);
    default: return false;
  }
}

class JpegDecoder {
 public:
  JpegDecoder() {
    info_.err = jpeg_std_error(&errors_);
    info_.client_data = this;
    errors_.error_exit = [](j_common_ptr info) {
      // The library reports reaching the memory limit as "Backing store not supported".
      self(info).too_large_ = info->err->msg_code == JERR_NO_BACKING_STORE;
      self(info).out_of_memory_ = info->err->msg_code == JERR_OUT_OF_MEMORY;
      self(info).stop();
    };
    errors_.emit_message = [](j_common_ptr info, int level) {
      if (level >= 0) return;
      if (!harmless(self(info).info_)) self(info).stop();
      if (self(info).oddity_[0] == '\0') {
        info->err->format_message(info, self(info).oddity_.data());
      }
    };
    errors_.output_message = [](j_common_ptr) {};  // nothing is printed from here
    progress_.progress_monitor = [](j_common_ptr info) {
      JpegDecoder& decoder = self(info);
      // Each scan of a progressive file is a pass over the whole picture, even if it has few bytes.
      if (decoder.info_.input_scan_number > kMaxScans) decoder.stop("more than 100 scans");
      for (int i = 0; i < decoder.info_.comps_in_scan; ++i) {
        decoder.seen_[at(decoder.info_.cur_comp_info[i]->component_index)] = true;
      }
    };
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&info_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Runs f; returns false if the library gave up inside it, and why() then gives the reason.
  template <class F> bool attempt(F f) {
    if (setjmp(jump_) != 0) return false;
    f();
    return true;
  }
  const char* why() const { return why_.data(); }
  // Whether decoding stopped because the file needs too much memory; the file may be undamaged.
  bool too_large() const { return too_large_; }
  // Whether the system refused memory: the file may be good.
  bool out_of_memory() const { return out_of_memory_; }
  // Whether the library could start, without having seen the file. It cannot if the headers that
  // were compiled in are another version's, whose message codes may differ, too.
  bool created() const { return created_; }
  // The first warning of the library that leaves the pixels unaffected; "" if there was none.
  const char* oddity() const { return oddity_.data(); }

  bool open(std::span<const std::byte> file) {
    return attempt([&] {
      jpeg_create_decompress(&info_);
      created_ = true;
      info_.mem->max_memory_to_use = kMaxMemory;
      info_.progress = &progress_;
      jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(file.data()),
                   static_cast<unsigned long>(file.size()));
      jpeg_read_header(&info_, TRUE);
    });
  }

  bool start() {
    return attempt([&] {
      // The library replicates grey; CMYK and YCCK arrive as CMYK and read_cmyk() converts them.
      info_.out_color_space = info_.num_components == 4 ? JCS_CMYK : JCS_RGB;
      jpeg_start_decompress(&info_);
      // By now a file of several scans has been read to its end, which the library takes for the
      // end of the picture wherever it comes.
      if (jpeg_has_multiple_scans(&info_) == FALSE) return;
      for (int c = 0; c < info_.num_components; ++c) {
        if (!seen_[at(c)]) stop("a component has no scan");
      }
    });
  }
  // Whether scans that would make the picture more exact are missing. The library smooths what is
  // there, other versions of it otherwise.
  bool lacks_scans() const {
    if (info_.coef_bits == nullptr) return false;  // not progressive
    for (int c = 0; c < info_.num_components; ++c) {
      const int(&bits)[DCTSIZE2] = info_.coef_bits[c];
      if (std::any_of(bits, bits + DCTSIZE2, [](int left) { return left != 0; })) return true;
    }
    return false;
  }

  bool read_rgb(Image& out) {
    return attempt([&] {
      while (info_.output_scanline < info_.output_height) {
        // Several rows a call, since the library decodes several at once.
        std::array<JSAMPROW, 4> rows;
        const auto wanted = std::min<JDIMENSION>(info_.output_height - info_.output_scanline, 4);
        for (JDIMENSION i = 0; i < wanted; ++i) {
          rows[i] = out.row(static_cast<int>(info_.output_scanline + i));
        }
        jpeg_read_scanlines(&info_, rows.data(), wanted);
      }
      jpeg_finish_decompress(&info_);
    });
  }

  bool read_cmyk(Image& out) {
    return attempt([&] {
      // One row of CMYK, in the library's memory, which is freed with the decoder.
      const JSAMPARRAY line = info_.mem->alloc_sarray(reinterpret_cast<j_common_ptr>(&info_),
                                                      JPOOL_IMAGE, 4 * info_.output_width, 1);
      while (info_.output_scanline < info_.output_height) {
        std::uint8_t* row = out.row(static_cast<int>(info_.output_scanline));
        jpeg_read_scanlines(&info_, line, 1);
        for (int x = 0; x < out.width(); ++x) {
          const std::uint8_t* cmyk = line[0] + 4 * static_cast<std::size_t>(x);
          std::uint8_t* rgb = row + 3 * static_cast<std::size_t>(x);
          for (int c = 0; c < 3; ++c) rgb[c] = multiply_inverted(cmyk[c], cmyk[3]);
        }
      }
      jpeg_finish_decompress(&info_);
    });
  }

  const jpeg_decompress_struct& info() const { return info_; }

 private:
  static JpegDecoder& self(j_common_ptr info) {
    return *static_cast<JpegDecoder*>(info->client_data);
  }
  [[noreturn]] void stop(const char* reason = nullptr) {
    if (reason != nullptr) {
      std::snprintf(why_.data(), why_.size(), "%s", reason);
    } else {
      errors_.format_message(reinterpret_cast<j_common_ptr>(&info_), why_.data());
    }
    std::longjmp(jump_, 1);
  }

  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf jump_{};
  std::array<char, JMSG_LENGTH_MAX> why_{}, oddity_{};
  std::array<bool, MAX_COMPONENTS> seen_{};  // components of the scans read so far
  bool created_ = false, too_large_ = false, out_of_memory_ = false;
};

}  // namespace

void decode_jpeg(std::span<const std::byte> file, const std::string& name, Image& out) {
  JpegDecoder decoder;
  const auto require = [&](bool done) {
    if (done) return;
    const jpeg_decompress_struct& info = decoder.info();
    if (decoder.out_of_memory()) {
      fail<SystemError>(
          "{}: decoding it takes more memory than there is; free memory, or scale it "
          "down",
          name);
    }
    if (!decoder.created()) {
      fail<DeviceError>(
          "libjpeg: not the one that this program was compiled for ({}), so that it reads no JPEG; "
          "build it again in an empty folder, with the header and the library of one version",
          decoder.why());
    }
    if (decoder.too_large()) {
      fail<InputError>(
          "{}: {} JPEG of {} x {} pixels, which takes more than 256 MB to decode; save it smaller "
          "or as a baseline JPEG",
          name, info.progressive_mode ? "a progressive" : "a many-scan", info.image_width,
          info.image_height);
    }
    fail<InputError>("{}: corrupt or unsupported JPEG ({}); copy it again or remove it", name,
                     decoder.why());
  };
  require(decoder.open(file));
  const jpeg_decompress_struct& info = decoder.info();
  check_image_size(info.image_width, info.image_height, name);
  if (info.num_components != 1 && info.num_components != 3 && info.num_components != 4) {
    fail<InputError>("{}: JPEG with {} components; convert it to RGB or remove it", name,
                     info.num_components);
  }
  if (info.arith_code) {
    // The arithmetic decoder silently continues with zeros where data is missing: damage would go
    // unnoticed.
    fail<InputError>("{}: arithmetic-coded JPEG; convert it to baseline or remove it", name);
  }
  // start() decodes a progressive file completely, within the memory limit, before the pixels are
  // allocated.
  require(decoder.start());
  if (decoder.lacks_scans()) {
    note_first("cut JPEG", fmt::format("{}: a progressive JPEG that ends before its last scans, as "
                                       "there may be more; it is read, but its pixels may differ "
                                       "from other programs'",
                                       name));
  }
  resize_picture(out, static_cast<int>(info.image_width), static_cast<int>(info.image_height),
                 name);
  if (info.num_components == 4) {
    require(decoder.read_cmyk(out));
  } else {
    require(decoder.read_rgb(out));
  }
  if (decoder.oddity()[0] != '\0') {
    note_first("odd JPEG", fmt::format("{}: an odd JPEG ({}), as there may be more; its pixels are "
                                       "whole, and it is read",
                                       name, decoder.oddity()));
  }
}

}  // namespace rk
