"""For PyInstaller: the helper's installation copies this module's source."""

from PyInstaller.utils.hooks import get_module_file_attribute

datas = [(get_module_file_attribute("pynvml"), ".")]
