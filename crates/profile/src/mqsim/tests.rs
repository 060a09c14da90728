use super::*;

/// A small device, its values no one's.
const DEVICE: &str = r#"<?xml version="1.0" encoding="us-ascii"?>
<Execution_Parameter_Set>
  <Host_Parameter_Set><PCIe_Lane_Count>4</PCIe_Lane_Count></Host_Parameter_Set>
  <Device_Parameter_Set>
    <Enabled_Preconditioning>true</Enabled_Preconditioning>
    <Memory_Type>FLASH</Memory_Type>
    <Queue_Fetch_Size>64</Queue_Fetch_Size>
    <Data_Cache_Capacity>4000000</Data_Cache_Capacity>
    <Data_Cache_DRAM_Data_Rate>800</Data_Cache_DRAM_Data_Rate>
    <Data_Cache_DRAM_Data_Busrt_Size>4</Data_Cache_DRAM_Data_Busrt_Size>
    <Data_Cache_DRAM_tRCD>12</Data_Cache_DRAM_tRCD>
    <Data_Cache_DRAM_tCL>13</Data_Cache_DRAM_tCL>
    <Address_Mapping>PAGE_LEVEL</Address_Mapping>
    <Ideal_Mapping_Table>false</Ideal_Mapping_Table>
    <CMT_Capacity>65536</CMT_Capacity>
    <CMT_Sharing_Mode>EQUAL_SIZE_PARTITIONING</CMT_Sharing_Mode>
    <Plane_Allocation_Scheme>WCDP</Plane_Allocation_Scheme>
    <Transaction_Scheduling_Policy>PRIORITY_OUT_OF_ORDER</Transaction_Scheduling_Policy>
    <Overprovisioning_Ratio>0.2</Overprovisioning_Ratio>
    <GC_Exec_Threshold>0.05</GC_Exec_Threshold>
    <GC_Block_Selection_Policy>RGA</GC_Block_Selection_Policy>
    <Use_Copyback_for_GC>true</Use_Copyback_for_GC>
    <Preemptible_GC_Enabled>false</Preemptible_GC_Enabled>
    <Dynamic_Wearleveling_Enabled>true</Dynamic_Wearleveling_Enabled>
    <Static_Wearleveling_Enabled>true</Static_Wearleveling_Enabled>
    <Static_Wearleveling_Threshold>77</Static_Wearleveling_Threshold>
    <Flash_Channel_Count>3</Flash_Channel_Count>
    <Flash_Channel_Width>2</Flash_Channel_Width>
    <Channel_Transfer_Rate>400</Channel_Transfer_Rate>
    <Chip_No_Per_Channel>2</Chip_No_Per_Channel>
    <Flash_Parameter_Set>
      <Flash_Technology>MLC</Flash_Technology>
      <CMD_Suspension_Support>PROGRAM_ERASE</CMD_Suspension_Support>
      <Page_Read_Latency_LSB>40000</Page_Read_Latency_LSB>
      <Page_Read_Latency_MSB>60000</Page_Read_Latency_MSB>
      <Page_Program_Latency_LSB>500000</Page_Program_Latency_LSB>
      <Page_Program_Latency_MSB>500000</Page_Program_Latency_MSB>
      <Block_Erase_Latency>3000000</Block_Erase_Latency>
      <Block_PE_Cycles_Limit>3000</Block_PE_Cycles_Limit>
      <Suspend_Erase_Time>600000</Suspend_Erase_Time>
      <Die_No_Per_Chip>2</Die_No_Per_Chip>
      <Plane_No_Per_Die>2</Plane_No_Per_Die>
      <Block_No_Per_Plane>128</Block_No_Per_Plane>
      <Page_No_Per_Block>64</Page_No_Per_Block>
      <Page_Capacity>8192</Page_Capacity>
    </Flash_Parameter_Set>
  </Device_Parameter_Set>
</Execution_Parameter_Set>
"#;

fn imported(text: &str) -> Imported {
    import("small", "ssdconfig.xml", text).unwrap()
}

fn parameters(text: &str) -> crate::flash::FlashParameters {
    let DeviceSpec::Flash(spec) = imported(text).profile.device else { panic!("it is flash") };
    spec.parameters()
}

#[test]
fn every_part_of_a_device_is_taken_over() {
    let found = parameters(DEVICE);
    let geometry = found.geometry;
    assert_eq!((geometry.channels, geometry.chips_per_channel), (3, 2));
    assert_eq!((geometry.dies_per_chip, geometry.planes_per_die), (2, 2));
    assert_eq!((geometry.blocks_per_plane, geometry.pages_per_block), (128, 64));
    assert_eq!(geometry.page_bytes, 8192);
    assert!((found.over_provisioning() - 0.2).abs() < 1e-5);
    assert_eq!(found.timing.erase_ns, 3_000_000.0);
    assert_eq!(found.gc.policy, crate::flash::GcPolicy::DChoices(7), "as many as log2(128)");
    assert_eq!((found.gc.low_blocks, found.gc.copy_back), (7, true), "5 % of 128, rounded up");
    assert_eq!(found.wear.static_spread, Some(77));
    let queue = found.events.expect("it is simulated by events");
    assert_eq!((queue.depth, queue.reads_first, queue.map_cache_pages), (64, true, Some(8)));
    assert_eq!(queue.suspend.map(|suspend| suspend.suspend_ns), Some(600_000));
}

#[test]
fn page_classes_differ_where_the_file_says_so() {
    let DeviceSpec::Flash(spec) = imported(DEVICE).profile.device else { panic!("it is flash") };
    assert_eq!(spec.timing.read_us.value, 50.0);
    assert_eq!(spec.timing.read_factors, [0.8, 1.2]);
    assert_eq!((spec.timing.program_us.value, spec.timing.program_factors.len()), (500.0, 0));
    assert_eq!((spec.timing.channel_mt_per_s.value, spec.timing.channel_width_bits), (400.0, 16));
    assert_eq!(spec.timing.erase_us.source, "ssdconfig.xml: Block_Erase_Latency");
}

#[test]
fn its_memory_is_a_write_cache() {
    let cache = imported(DEVICE).profile.write_cache.expect("it has one").parameters();
    assert_eq!((cache.capacity, cache.hit_base_ns), (Bytes(4_000_000), 25.0));
    assert!((cache.hit_ns_per_byte - 1e3 / 3200.0).abs() < 1e-9, "{}", cache.hit_ns_per_byte);
    let without = DEVICE.replace(">4000000<", ">0<");
    assert_eq!(imported(&without).profile.write_cache, None);
}

#[test]
fn what_is_not_modelled_is_said() {
    assert_eq!(imported(DEVICE).ignored, ["CMT_Sharing_Mode"]);
}

#[test]
fn a_profile_of_it_can_be_read_back() {
    let profile = imported(DEVICE).profile;
    assert_eq!(Profile::from_toml(&profile.to_toml(), "small").unwrap(), profile);
}

#[test]
fn refusals_say_where_and_why() {
    let refused = |from: &str, to: &str| {
        let text = DEVICE.replace(from, to);
        assert_ne!(text, DEVICE);
        let error = import("small", "ssdconfig.xml", &text).unwrap_err();
        assert!(error.hint().is_some());
        error.to_string()
    };
    let missing = refused("<Channel_Transfer_Rate>400</Channel_Transfer_Rate>", "");
    assert!(missing.starts_with("ssdconfig.xml:4: 'Channel_Transfer_Rate'"), "{missing}");
    let words = refused(">400<", ">fast<");
    assert!(words.contains("ssdconfig.xml:29:") && words.contains("'fast'"), "{words}");
    let half = refused(">64</Page_No", ">64.5</Page_No");
    assert!(half.contains("whole number"), "{half}");
    let policy = refused(">RGA<", ">CLOCK<");
    assert!(policy.contains("GC_Block_Selection_Policy"), "{policy}");
    let layer = refused(">PAGE_LEVEL<", ">HYBRID<");
    assert!(layer.contains("Address_Mapping"), "{layer}");
    let cell = refused(">MLC<", ">QLC<");
    assert!(cell.contains("Flash_Technology"), "{cell}");
    let open = refused("</Device_Parameter_Set>", "");
    assert!(open.starts_with("ssdconfig.xml: "), "{open}");
    let none = refused("Flash_Parameter_Set", "Other_Set");
    assert!(none.contains("'Flash_Parameter_Set': it is missing"), "{none}");
    // The rules of profiles hold here as well.
    let page = refused(">8192<", ">8000<");
    assert!(page.contains("page"), "{page}");
}
